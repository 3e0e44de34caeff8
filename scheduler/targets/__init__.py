"""Compilation targets, the boards that are sold with them, and their backends."""

from scheduler.targets.model import Board, Hardware, Target
from scheduler.targets.registry import board_of, boards, emulation_of, find, names

__all__ = ["Board", "Hardware", "Target", "board_of", "boards", "emulation_of", "find", "names"]
