"""What the detectors from PyOD have in common."""

NEEDS = {"pyod": "pip install 'rgld[bench]'"}
