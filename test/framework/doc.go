// Package framework is what Ginkgo suites against a real control plane have in common.
//
// A suite starts its own instance, so that suites of several packages run side by side, and works on it as
// administrator; the manager under test is the real program with the rights it is shipped with:
//
//	var env *framework.Env
//
//	var _ = BeforeSuite(func(ctx SpecContext) {
//		env = framework.Start(ctx, "mlflow", cluster.OpenShift, framework.WithTypes(mlflowv1.AddToScheme))
//		installed := env.InstallOperator(ctx, "config/default")
//		env.StartManager(ctx, framework.ManagerOptions{ServiceAccount: installed.ServiceAccount})
//	})
//
// Everything started is ended by DeferCleanup, the instance with all its files included. The log of the manager is
// attached to the report of a spec that fails.
//
// [Audit] reads the API server's audit log: the proof that nothing is written or read at rest is what the server saw,
// not what a client thinks it did. The API server writes an entry before it answers, so an entry of a request that has
// returned is always there.
//
// [Golden] compares objects with YAML files; `go test <package> -update` writes the files again.
package framework
