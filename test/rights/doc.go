// Package rights records the rights that a manager used while a suite ran, from the audit log of the API server, and reads the records
// of all suites.
//
// A record is a small file per suite. Suites write it when they end, see package framework; package rbac checks the shipped roles
// against all of them. The record of a request has the input of an authorizer: the verb, the resource, the name where a role
// names it, and whether the request was in the namespace of the manager.
//
// Some authorization checks are not requests of their own. They are derived from the request that causes them:
//
//   - an apply that creates is authorized as a creation too;
//   - an owner reference that blocks the deletion of the owner needs the right to update the finalizers of the owner, where the
//     admission plugin OwnerReferencesPermissionEnforcement is on, as on OpenShift;
//   - a change of the owner references of an object needs the right to delete it, where that plugin is on: adopting an object of another
//     operator is such a change;
//   - a Route with a host needs routes/custom-host, which OpenShift asks for itself;
//   - a binding needs the verb bind, or all that the bound role grants;
//   - a role needs all that it grants.
package rights
