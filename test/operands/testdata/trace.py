"""Sends a trace to the tracking server and prints its id."""
import mlflow

with mlflow.start_span("question") as span:
    span.set_inputs({"text": "why"})
    span.set_outputs("because")
mlflow.flush_trace_async_logging()
print(span.trace_id)
