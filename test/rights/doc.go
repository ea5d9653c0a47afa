// Package rights records which rights a manager used while a suite ran, out of the audit log of the API server, and reads what all suites
// have recorded.
//
// A record is a small file per suite. Suites write it when they end, see package framework; package rbac holds the shipped roles
// against all of them. What is recorded of a request is what an authorizer receives: the verb, the resource, the name where a role
// names it, and whether it was in the namespace of the manager.
//
// Not all that is authorized is a request of its own. What a server asks in the course of another one is derived from that one:
//
//   - an apply that creates is authorized as a creation too;
//   - an owner reference that blocks the deletion of the owner needs the right to update the finalizers of the owner, where the
//     admission plugin OwnerReferencesPermissionEnforcement is on, as on OpenShift;
//   - a change of the owner references of an object needs the right to delete it, where that plugin is on: taking over what another operator
//     has left is such a change;
//   - a Route with a host needs routes/custom-host, which OpenShift asks for itself;
//   - a binding needs the verb bind, or all that the bound role grants;
//   - a role needs all that it grants.
package rights
