// Package mlflow turns the cluster-scoped MLflow resource into a running, TLS-terminating MLflow server in one namespace,
// reachable inside the cluster and, where the cluster serves the Gateway API, through a gateway.
//
// The creation of an MLflow, file by file:
//
//   - setup.go: the event of the new MLflow becomes a request; RBAC markers, watches and caches
//   - pkg/reconciler reads it and runs the phases of phases.go in order
//   - gate.go: on a platform, wait until an MLflowOperator hands MLflow over; resources/check.go: refuse what cannot run
//   - references.go: hash and name what pods consume; issue the serving certificates where no platform does
//   - claim.go: create the volume claim, and keep it within what its policy allows
//   - migration.go: collect facts (migration_observe.go), decide (migration), create the Job, report
//   - resources: build every object as a pure function of the MLflow and the inputs
//   - pkg/apply: write guards, then the Deployments; exposure.go: then what leads to it, and what the gateway says of that
//   - status.go: derive the conditions from what the Deployments say; pkg/reconciler patches the status once
//
// artifacts.go checks what a second server, for artifacts, needs, and stops it when it is switched off. Namespace RBAC
// (controllers/mlflow/access) has a condition too, and artifactstore reports on MLflowConfigs.
package mlflow
