"""Classes of elements without touching elements: instances of any size made small."""
