// Package access lets the groups that the platform's Auth resource names into the namespaces that ask for MLflow with a
// label: two RoleBindings in each, one to look and one to change.
//
// setup.go says what is watched and with which rights, access.go what one reconciliation does, bindings.go what a namespace should
// hold (pure functions), auth.go how Auth is followed and what the status reports. The controller is a part of the
// component mlflow, behind a switch of its own.
package access
