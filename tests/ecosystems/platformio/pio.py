"""`pio`, with the list of licences that it would fetch: two of SPDX's."""

import sys

from platformio.__main__ import main
from platformio.package.manifest import schema

LICENCES = {"licenses": [{"licenseId": "MIT"}, {"licenseId": "Apache-2.0"}]}
schema.ManifestSchema.load_spdx_licenses = staticmethod(lambda: LICENCES)
sys.exit(main())
