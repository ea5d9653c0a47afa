# Runs a task through the Ray client at the address argv[1], as a user of the SDK does.
import sys

import ray

ray.init(f"ray://{sys.argv[1]}", logging_level="ERROR", log_to_driver=False)
print(ray.get(ray.remote(lambda: 6 * 7).remote(), timeout=60))
