"""Nearest neighbours: exact for small tables, inverted lists with measured recall for others."""
