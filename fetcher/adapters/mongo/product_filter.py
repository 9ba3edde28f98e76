"""Products are compared without case, everywhere (decisions)."""

import re

from fetcher.adapters.mongo.document_fields import Document


def product_filter(product_name: str) -> Document:
    """What a field holds that names this product, in whatever case and with blanks around it."""
    return {"$regex": rf"^\s*{re.escape(product_name.strip())}\s*$", "$options": "i"}
