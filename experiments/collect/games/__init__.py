"""The rules of each game: a module each, all with the functions of :class:`.protocol.Game`."""
