"""MongoDB as a source: raw batches by pymongo, turned into JSON without Python objects between."""
