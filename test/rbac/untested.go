package rbac

import "slices"

// unproven are rights that no suite uses yet, with the reason. The keys are the grants of a group in one line each, without the
// prefix of the roles. A spec that uses one of them removes it from the list.
var unproven = map[string][]string{
	"no cert-manager runs in the suites; the controller of RayClusters has it in unit tests, before a client of its own": {
		"raycluster: create certificates.cert-manager.io", "raycluster: delete certificates.cert-manager.io",
		"raycluster: get certificates.cert-manager.io", "raycluster: list certificates.cert-manager.io",
		"raycluster: patch certificates.cert-manager.io", "raycluster: watch certificates.cert-manager.io",
	},
	"no scheduler with PodGroups runs in the suites; these go the way of the other wrapped kinds": {
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
	"taking a Route over whose host differs asks for it, and which Routes do so depends on the suite": {
		"raycluster: update routes.route.openshift.io/custom-host",
		"modelcatalog-namespaced: update routes.route.openshift.io/custom-host model-catalog-https",
	},
	"the platform's DSCInitialization is served in no suite of RayClusters": {
		"raycluster: list dscinitializations.dscinitialization.opendatahub.io default-dsci",
		"raycluster: watch dscinitializations.dscinitialization.opendatahub.io default-dsci",
	},
	"OpenShift asks for delete where an owner changes, and an object that a user orphaned may be any child; some go with a feature": {
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
	"the suites publish MLflow in all ways and a registry by an Ingress; for the others, unit tests render the same objects": {
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
		"modelcatalog-namespaced: get configmaps model-catalog-ca",
		"modelcatalog-namespaced: get ingresses.networking.k8s.io model-catalog-https",
		"modelcatalog-namespaced: patch backendtlspolicies.gateway.networking.k8s.io model-catalog-ca",
		"modelcatalog-namespaced: patch configmaps model-catalog-ca",
		"modelcatalog-namespaced: patch ingresses.networking.k8s.io model-catalog-https",
		"modelregistry-namespaced: create backendtlspolicies.gateway.networking.k8s.io",
		"modelregistry-namespaced: delete backendtlspolicies.gateway.networking.k8s.io",
		"modelregistry-namespaced: get backendtlspolicies.gateway.networking.k8s.io",
		"modelregistry-namespaced: patch backendtlspolicies.gateway.networking.k8s.io",
	},
	"no suite has this part of what an older installation leaves behind": {
		"platform: delete deployments.apps catalog-controller-manager",
		"modelcatalog-namespaced: patch configmaps model-catalog-default-sources",
	},
	"pods get their certificate while they have an address and do not run yet; the kubelet of the suites starts them at once": {
		"raycluster: patch pods",
	},
}

// isUnproven reports whether a grant is listed in unproven.
func isUnproven(g grant) bool {
	for _, group := range unproven {
		if slices.Contains(group, g.String()[len(prefix):]) {
			return true
		}
	}
	return false
}
