// Package mlflow turns the cluster-scoped MLflow resource into a running, TLS-terminating MLflow server in one namespace,
// reachable inside the cluster and, where the cluster serves the Gateway API, through a gateway.
//
// A reconcile, file by file:
//
//   - setup.go: RBAC markers, watches and caches
//   - phases.go: the phases that pkg/reconciler runs in order
//   - mlflowoperator.go: on a platform, wait until the MLflowOperator is ready
//   - resources/check.go: reject an MLflow whose objects the API server would reject
//   - claim.go: create the PersistentVolumeClaim, or update its owner, labels, size and storage class
//   - references.go: hash the Secrets and ConfigMaps that pods consume; issue serving certificates where the platform does not
//   - migration.go: observe the workloads (migration_observe.go), decide (migration), create the Job, report
//   - resources: build every object as a pure function of the MLflow and the inputs
//   - pkg/apply: write NetworkPolicies, RBAC and Deployments; exposure.go: then Services, routes and monitors
//   - status.go: derive the conditions from the Deployments; pkg/reconciler patches the status once
//
// artifacts.go validates and scales down the separate artifacts server. The package access reconciles namespace RBAC and
// feeds one condition; the package artifactstore reconciles MLflowConfigs.
package mlflow
