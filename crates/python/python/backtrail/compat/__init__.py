"""Drop-in replacements for other checkpoint systems: their names and signatures, implemented with Backtrail.

A caller changes only the import. ``docs/python.md`` lists the differences from the originals, with the reasons.
"""
