"""What can go wrong, as types.

::

    RGLDError
    ├── ParameterError   (also a ValueError)  a constructor parameter is out of its range
    ├── TableError       (also a ValueError)  a value or column of the table cannot be used
    ├── CalibrationError (also a ValueError)  p-values were asked of a detector that held out no rows
    └── ModelFileError   (also a ValueError)  a model file is damaged, foreign or hostile

Each message is one sentence or two: what was expected, what came, what to do.
"""


class RGLDError(Exception):
    """Base class of every error this package raises on purpose."""


class ParameterError(RGLDError, ValueError):
    """A parameter has a value or type it cannot have."""


class TableError(RGLDError, ValueError):
    """A table holds a value or a column that cannot be scored."""


class ModelFileError(RGLDError, ValueError):
    """A file is not a model file that this version can read safely."""


class CalibrationError(RGLDError, ValueError):
    """A detector without calibration rows has no p-values."""
