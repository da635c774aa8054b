"""Whether what a ledger says is so: checks that anybody can run, on a ledger at hand or on what left it.

Here: the named checks of a whole ledger (`verify`), releases and their receipts (`releases`), and one file that checks
an exported ledger and shares no code with the rest (`offline`). Not here: spending, and what a ledger does when a
check fails (`stores`). Start with `verify.verify`.
"""
