"""The errors that this package raises.

::

    RGLDError
    ├── ParameterError   (also a ValueError)  a parameter has a value that it cannot have
    ├── TableError       (also a ValueError)  a value or a column of a table cannot be used
    ├── CalibrationError (also a ValueError)  p-values were asked for, but no rows were held out of the fit
    └── ModelFileError   (also a ValueError)  a model file is damaged, not ours, or hostile

A message is one or two sentences: what was expected, what came, what to do. `TableWarning` is a warning: a table can be
scored, but some of its values cannot be read.
"""


class RGLDError(Exception):
    """Base class of every error this package raises on purpose."""


class ParameterError(RGLDError, ValueError):
    """A parameter has a value or a type that it cannot have."""


class TableError(RGLDError, ValueError):
    """A table holds a value or a column that cannot be used."""


class TableWarning(UserWarning):
    """Values of a table cannot be read as the training table's column was, and count as missing."""


class ModelFileError(RGLDError, ValueError):
    """A file is not a model file that this version can read safely."""


class CalibrationError(RGLDError, ValueError):
    """P-values were asked for, but the detector held out no rows in its fit."""
