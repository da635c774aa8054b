"""What is shown to readers outside: figures and tables, made of what `privacy/` proves.

Here: the worked example (`example.py`), its charts (`charts.py`, the only module that needs the extra `figures`) and
the files that hold both (`figures.py`, the door). Not here: anything private, terminal output (`cli/`), and mathematics
of its own, except the search over orders that checks a closed form.
"""
