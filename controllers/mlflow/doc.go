// Package mlflow turns the cluster-scoped MLflow resource into a running, TLS-terminating MLflow server in one namespace,
// reachable inside the cluster and, depending on the configuration, through a Gateway or an Ingress.
//
// A reconcile, file by file:
//
//   - setup.go: RBAC markers, watches and caches
//   - phases.go: the phases that pkg/reconciler runs in order
//   - mlflowoperator.go: on a platform, wait until the MLflowOperator is ready
//   - resources/check.go: reject an MLflow whose objects the API server would reject
//   - claim.go: create the PersistentVolumeClaim, or update its owner, labels, size and storage class
//   - references.go: hash the Secrets and ConfigMaps that pods consume; issue serving certificates where the platform does not
//   - migration.go: observe the workloads (migration_observe.go) and decide (migration); resources: build every object
//   - pkg/apply: write NetworkPolicies, RBAC, Deployments and CronJobs; migration.go: create the migration Job
//   - status.go: report the rollout of the Deployments
//   - exposure.go: write Services, routes and monitors; pkg/reconciler: patch the status once
//
// artifacts.go validates and scales down the separate artifacts server. The package access reconciles namespace RBAC and
// feeds one condition; the package artifactstore reconciles MLflowConfigs.
package mlflow
