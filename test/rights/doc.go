// Package rights records the permissions that managers use in a suite, from the audit log of the API server, and reads the records of all
// suites.
//
// A suite writes its record when it ends, see package framework; package rbac compares the shipped roles with all records. For each
// request a record has the input of an authorizer: the verb, the resource, the name if a role contains it, and whether the request
// was in the namespace of the manager.
//
// Some requests require other permissions in addition to their own:
//
//   - an apply that creates an object requires create;
//   - an owner reference that blocks the deletion of the owner requires update of the owner's finalizers, if the admission plugin
//     OwnerReferencesPermissionEnforcement is enabled, as on OpenShift;
//   - a change of the owner references of an object requires delete, if that plugin is enabled; the adoption of an object of another
//     operator is such a change;
//   - a Route with a host requires routes/custom-host on OpenShift;
//   - a binding requires the verb bind, or all permissions of the role;
//   - a role requires all permissions that it grants.
package rights
