package rbac

// rare are rights that are needed although no suite uses them, with the reason; the key is the grant in one line.
var rare = map[string]string{
	prefix + "mlflow: delete secrets mlflow-tls in its own namespace": "its owner changes like that of the other children, which are checked; " +
		"the audit log holds nothing of the content of Secrets",
	prefix + "mlflow: get jobs.batch in its own namespace":                                                 "asked only when a creation finds the Job there already: its first answer was lost, or the cache is behind",
	prefix + "webhook-certificate: update secrets odh-platform-operator-webhook-cert in its own namespace": "the certificate is renewed after two months",
	prefix + "modelregistry-namespaced: delete rolebindings.rbac.authorization.k8s.io": "its owner changes like that of the Role which it binds, which is checked; " +
		"it is made on OpenShift only, and the suite that lets go of a registry runs without",
}
