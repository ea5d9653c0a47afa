// Package access reconciles namespace RBAC: two RoleBindings, view and edit, for the groups of the platform's Auth resource in each
// namespace with the workspace label.
//
// setup.go contains permissions, watches and caches, access.go the reconcile and the desired RoleBindings, auth.go the watch of Auth and
// the condition. The controller belongs to the component mlflow and has its own setting.
package access
