"""The rules of each game: a module each, all with the functions of :class:`shannon_game.experiments.collect.games.protocol.Game`."""
