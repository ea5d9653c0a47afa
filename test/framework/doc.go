// Package framework contains the helpers of Ginkgo suites that run against a real control plane.
//
// Each suite starts its own instance, so the suites of several packages can run in parallel. The suite works as administrator. The manager under
// test is the real program with the shipped permissions:
//
//	var env *framework.Env
//
//	var _ = BeforeSuite(func(ctx SpecContext) {
//		env = framework.Start(ctx, "mlflow", cluster.OpenShift, framework.WithTypes(mlflowv1.AddToScheme), framework.WithOperator("config/default"))
//		manager = env.StartManager(ctx, framework.ManagerOptions{})
//	}, NodeTimeout(framework.StartTimeout))
//
// DeferCleanup stops all started processes and deletes the files of the instance. The log of the manager is attached to the report of a
// spec that fails.
//
// [Audit] reads the audit log of the API server, to check that nothing is written or read in the steady state. The API server writes an entry
// before it responds, so the log contains each request that has returned.
//
// [Golden] compares objects with YAML files; `go test <package> -update` writes the files.
package framework
