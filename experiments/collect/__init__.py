"""The games that people play in a browser: questions of a study, pages, and a database of what was answered.

``settings`` says what can be set, ``experiment`` serves; ``database`` has the tables, ``games`` the rules of each game,
``register`` writes a study's questions, ``assign`` chooses the next one, ``sessions`` and ``play`` walk a person
through, ``pages`` and ``server`` speak HTTP.

A notebook serves with::

    from shannon_game.experiments.collect import collect, collect_demo

    collect(collect_demo(), game="cloze")
"""

import lazy_loader as lazy

# the server is imported when it is used; `from shannon_game.experiments import collect` is this module, whose name is
# older
__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
