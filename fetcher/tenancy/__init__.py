"""Tenants as the Tenant Manager knows them (spec configuration 11).

Like the adapters it is chosen by the composition root only, and knows nothing above the ports; it
may use what they share.
"""

from collections.abc import Callable, Sequence

Noted = Callable[[Sequence[str]], None]
"""Is told of passwords and keys before anything else is done with them, so that no log has them."""
