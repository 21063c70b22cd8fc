"""Tables, figures, published values beside ours, and the manifest of trained results.

Nothing is imported here: tables and published values do not need matplotlib.
"""
