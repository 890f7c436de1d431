"""`python -m pybuild.cli`: the command without its script."""

from pybuild.cli import main

raise SystemExit(main())
