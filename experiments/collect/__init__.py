"""The games that people play in a browser: questions of a study, pages, and a database of what was answered.

``settings`` says what can be set, ``experiment`` serves; ``database`` has the tables, ``games`` the rules of each game,
``register`` writes a study's questions, ``assign`` chooses the next one, ``sessions`` and ``play`` walk a person
through, ``pages`` and ``server`` speak HTTP.
"""
