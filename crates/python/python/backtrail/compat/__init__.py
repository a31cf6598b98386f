"""Drop-ins for other checkpoint systems: their names and signatures, with Backtrail behind them.

Only the import changes. What differs from the originals, and why, is in ``docs/python.md``.
"""
