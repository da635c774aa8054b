"""The command line: a thin door. Start with `main.py`; `show.py` prints, `init.py` writes a first contract, `demo.py`
runs the main job on real data, `figures.py` says what was drawn. No mathematics and no SQL here.
"""
