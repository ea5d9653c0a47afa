package rbac

// rare has the reasons why permissions that no suite uses are required, by grant.
var rare = map[string]string{
	prefix + "mlflow: delete secrets mlflow-tls in its own namespace": "required when its owner reference changes, as for other children; " +
		"the audit log does not contain Secrets",
	prefix + "mlflow: get jobs.batch in its own namespace":                                                 "used only if the Job exists when it is created: the first response was lost, or the cache is stale",
	prefix + "webhook-certificate: update secrets odh-platform-operator-webhook-cert in its own namespace": "the certificate is renewed after two months",
	prefix + "modelregistry-namespaced: delete rolebindings.rbac.authorization.k8s.io": "required when its owner reference changes, as for its Role; " +
		"it is created on OpenShift only, where no suite releases a registry",
}
