"""What alpha-id costs and finds, measured beside the bare tools and beside what a user would else take.

Run ``make bench``, or ``python -m bench --data DIR``. Holds: measuring and printing. Refuses: failing because
a goal was missed (another machine is no fault), and tuning anything on what it measures.
"""
