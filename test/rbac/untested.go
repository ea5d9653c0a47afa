package rbac

import "slices"

// untested contains, by reason, the permissions that no suite uses, as grants without the prefix of the roles. Remove the line of a
// permission when a spec uses it.
var untested = map[string][]string{
	"no cert-manager runs in the suites; unit tests of RayClusters use a fake client": {
		"raycluster: create certificates.cert-manager.io", "raycluster: delete certificates.cert-manager.io",
		"raycluster: get certificates.cert-manager.io", "raycluster: list certificates.cert-manager.io",
		"raycluster: patch certificates.cert-manager.io", "raycluster: watch certificates.cert-manager.io",
	},
	"no suite serves PodGroups; the controller handles them like other wrapped kinds": {
		"appwrapper: create podgroups.scheduling.k8s.io", "appwrapper: create podgroups.scheduling.sigs.k8s.io",
		"appwrapper: create podgroups.scheduling.x-k8s.io",
		"appwrapper: delete podgroups.scheduling.k8s.io", "appwrapper: delete podgroups.scheduling.sigs.k8s.io",
		"appwrapper: delete podgroups.scheduling.x-k8s.io",
		"appwrapper: get podgroups.scheduling.k8s.io", "appwrapper: get podgroups.scheduling.sigs.k8s.io",
		"appwrapper: get podgroups.scheduling.x-k8s.io",
		"appwrapper: list podgroups.scheduling.k8s.io", "appwrapper: list podgroups.scheduling.sigs.k8s.io",
		"appwrapper: list podgroups.scheduling.x-k8s.io",
		"appwrapper: watch podgroups.scheduling.k8s.io", "appwrapper: watch podgroups.scheduling.sigs.k8s.io",
		"appwrapper: watch podgroups.scheduling.x-k8s.io",
		"appwrapper: patch podgroups.scheduling.k8s.io", "appwrapper: patch podgroups.scheduling.sigs.k8s.io",
		"appwrapper: patch podgroups.scheduling.x-k8s.io",
	},
	"required to adopt a Route with another host; the suites of these components contain none": {
		"raycluster: update routes.route.openshift.io/custom-host",
		"modelcatalog-namespaced: update routes.route.openshift.io/custom-host model-catalog-https",
	},
	"no suite of RayClusters serves the DSCInitialization of the platform": {
		"raycluster: list dscinitializations.dscinitialization.opendatahub.io default-dsci",
		"raycluster: watch dscinitializations.dscinitialization.opendatahub.io default-dsci",
	},
	"OpenShift requires the verb delete for a change of owner references; in the specs the operator deletes only other child objects": {
		"mlflow: delete servicemonitors.monitoring.coreos.com in its own namespace",
		"olm: delete prometheusrules.monitoring.coreos.com odh-platform-operator in its own namespace",
		"olm: delete servicemonitors.monitoring.coreos.com odh-platform-operator-metrics in its own namespace",
		"modelmesh: delete servicemonitors.monitoring.coreos.com",
		"modelcatalog-namespaced: delete configmaps default-catalog-sources",
		"modelcatalog-namespaced: delete networkpolicies.networking.k8s.io model-catalog-egress",
		"modelcatalog-namespaced: delete networkpolicies.networking.k8s.io model-catalog-https-route",
		"modelcatalog-namespaced: delete networkpolicies.networking.k8s.io model-catalog-ingress",
		"modelcatalog-namespaced: delete referencegrants.gateway.networking.k8s.io allow-gateway-model-catalog",
		"modelcatalog-namespaced: delete roles.rbac.authorization.k8s.io model-catalog-admin",
		"modelcatalog-namespaced: delete routes.route.openshift.io model-catalog-https",
		"modelcatalog-namespaced: delete secrets model-catalog-kube-rbac-proxy",
		"modelcatalog-namespaced: delete secrets model-catalog-postgres",
		"modelcatalog-namespaced: delete secrets model-catalog-postgres-tls",
	},
	"the suites expose MLflow by every kind of route, and a registry by an Ingress; unit tests cover the other combinations": {
		"mlflow: delete backendtlspolicies.gateway.networking.k8s.io mlflow-artifacts-ca in its own namespace",
		"mlflow: delete configmaps mlflow-artifacts-ca in its own namespace",
		"mlflow: get backendtlspolicies.gateway.networking.k8s.io mlflow-artifacts-ca in its own namespace",
		"mlflow: patch backendtlspolicies.gateway.networking.k8s.io mlflow-artifacts-ca in its own namespace",
		"mlflow: patch configmaps mlflow-artifacts-ca in its own namespace",
		"modelcatalog-namespaced: create backendtlspolicies.gateway.networking.k8s.io",
		"modelcatalog-namespaced: create ingresses.networking.k8s.io",
		"modelcatalog-namespaced: delete backendtlspolicies.gateway.networking.k8s.io model-catalog-ca",
		"modelcatalog-namespaced: delete configmaps model-catalog-ca",
		"modelcatalog-namespaced: delete ingresses.networking.k8s.io model-catalog-https",
		"modelcatalog-namespaced: get backendtlspolicies.gateway.networking.k8s.io model-catalog-ca",
		"modelcatalog-namespaced: get ingresses.networking.k8s.io model-catalog-https",
		"modelcatalog-namespaced: patch backendtlspolicies.gateway.networking.k8s.io model-catalog-ca",
		"modelcatalog-namespaced: patch configmaps model-catalog-ca",
		"modelcatalog-namespaced: patch ingresses.networking.k8s.io model-catalog-https",
		"modelregistry-namespaced: create backendtlspolicies.gateway.networking.k8s.io",
		"modelregistry-namespaced: delete backendtlspolicies.gateway.networking.k8s.io",
		"modelregistry-namespaced: get backendtlspolicies.gateway.networking.k8s.io",
		"modelregistry-namespaced: patch backendtlspolicies.gateway.networking.k8s.io",
	},
	"no suite creates these objects of a legacy installation": {
		"platform: delete deployments.apps catalog-controller-manager",
		"modelcatalog-namespaced: patch configmaps model-catalog-default-sources",
	},
	"a pod gets its certificate between the assignment of its IP and its start, which the fake kubelet does at the same time": {
		"raycluster: patch pods",
	},
}

// isUntested reports whether a grant is listed in untested.
func isUntested(g grant) bool {
	for _, group := range untested {
		if slices.Contains(group, g.String()[len(prefix):]) {
			return true
		}
	}
	return false
}
