"""Models as files, without pickle: loading one never runs code from it."""

from gnomon.models.file import load, save

__all__ = ["load", "save"]
