package doctor

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/odh-platform/odh-platform-operator/cmd/internal/kinds"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/installed"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

func onOpenShift(w *clusterState) {
	w.served = append(w.served, capability.Route, capability.OpenShiftIngress)
}

func TestHealthyInstallationHasNoProblems(t *testing.T) {
	for name, change := range map[string]func(*clusterState){
		"plain": func(*clusterState) {}, "openshift": onOpenShift,
		"legacy operator scaled to zero": func(w *clusterState) { w.documents(legacyDeployment("codeflare-operator-manager", "old", 0)) },
		"legacy operator of a disabled component": func(w *clusterState) {
			w.args("--enable-modelmesh=false")
			w.documents(legacyDeployment("modelmesh-controller", "old", 1))
		},
		"held Lease of a legacy operator of a disabled component": func(w *clusterState) {
			w.args("--enable-modelcatalog=false")
			w.documents(legacyLease("catalog.opendatahub.io"))
		},
		"objects for OLM enabled":  func(w *clusterState) { w.args("--enable-olm") },
		"leader election disabled": func(w *clusterState) { w.deleteObject("Lease", ""); w.args("--leader-elect=false") },
		"mounted certificate": func(w *clusterState) {
			w.deleteObject("Secret", certificateSecret)
			w.args("--webhook-cert-mode=mounted")
		},
		"missing CRD of a disabled component": func(w *clusterState) {
			w.deleteObject("CustomResourceDefinition", "predictors.serving.kserve.io")
			w.args("--enable-modelmesh=false")
		},
		"webhook Service of type ExternalName": func(w *clusterState) {
			w.set("Service", "", "localhost", "spec", "externalName")
			w.deleteObject("EndpointSlice", "")
		},
		"installed by OLM": byOLM,
		"foreign webhooks": func(w *clusterState) {
			w.documents(`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: pods}, webhooks: [{name: w, rules: [{apiGroups: [""], resources: [pods]}], clientConfig: {service: {namespace: x, name: gone}}}]}`)
		},
		"manager image with a digest":     func(w *clusterState) { w.manager(func(c *corev1.Container) { c.Image += "@sha256:0123456789abcdef" }) },
		"manager image without a version": func(w *clusterState) { w.manager(func(c *corev1.Container) { c.Image = "quay.io/x/manager:latest" }) },
	} {
		t.Run(name, func(t *testing.T) {
			w := healthy(t)
			change(w)
			seen := map[string]bool{}
			for _, finding := range w.examine() {
				seen[finding.Check] = true
				if finding.Result != OK || finding.Found == "" || finding.Why != "" || finding.Fix != "" || finding.Subject != "" {
					t.Errorf("unexpected finding: %+v", finding)
				}
			}
			if len(seen) < len(checks)-1 { // runtimes has no finding while ModelMesh is disabled
				t.Errorf("got findings only of checks %v", slices.Sorted(maps.Keys(seen)))
			}
		})
	}
}

// fault is a faulty installation with the expected finding.
type fault struct {
	change     func(*clusterState)
	check      string
	result     Result
	found, fix string
}

// Each fault is found by its check only. Other checks may be unknown if settings or the manager are faulty.
func TestEachFaultIsFoundByItsCheck(t *testing.T) {
	for group, faults := range map[string]map[string]fault{
		"cluster": clusterFaults(), "manager": managerFaults(), "legacy": legacyFaults(), "crds": crdFaults(), "rights": rightsFaults(),
		"webhooks": webhookFaults(), "certificate": certificateFaults(), "references": referenceFaults(),
	} {
		for name, tc := range faults {
			t.Run(group+"/"+name, func(t *testing.T) {
				w := healthy(t)
				tc.change(w)
				all := w.examine()
				found := failedFindings(all, tc.check)
				i := slices.IndexFunc(found, func(x Finding) bool { return strings.Contains(x.Subject+": "+x.Found, tc.found) })
				if i < 0 {
					t.Fatalf("no finding contains %q: %+v", tc.found, found)
				}
				if x := found[i]; x.Result != tc.result || !strings.Contains(x.Fix, tc.fix) || x.Why == "" && x.Result != Unknown || x.Fix == "" {
					t.Errorf("%+v, want %s, fix %q", x, tc.result, tc.fix)
				}
				for _, other := range all {
					isConsequence := other.Result == Unknown && slices.ContainsFunc(failedFindings(all, "settings"), func(f Finding) bool { return f.Result == Fail }) ||
						tc.check == "manager" && other.Result == Unknown
					if other.Result != OK && other.Check != tc.check && !isConsequence {
						t.Errorf("check %s also reports a problem: %+v", other.Check, other)
					}
				}
			})
		}
	}
}

// withoutKind removes a served kind and adds others.
func withoutKind(kind schema.GroupVersionKind, added ...schema.GroupVersionKind) func(*clusterState) {
	return func(w *clusterState) {
		w.served = append(slices.DeleteFunc(w.served, func(k schema.GroupVersionKind) bool { return k == kind }), added...)
	}
}

func clusterFaults() map[string]fault {
	return map[string]fault{
		"old server":               {func(w *clusterState) { w.server = "v1.29.4+abc" }, "server", Fail, "older than 1.30", "upgrade"},
		"server without a version": {func(w *clusterState) { w.server = "" }, "server", Unknown, `reports version ""`, "kubectl version"},
		"older version served":     {withoutKind(capability.HTTPRoute, capability.HTTPRoute.GroupKind().WithVersion("v1alpha0")), "capabilities", Warn, "served as v1alpha0 and not as v1", "install a release"},
		"no KubeRay":               {withoutKind(capability.RayCluster), "capabilities", Warn, "component raycluster: enabled, and waits for RayCluster.ray.io/v1", "KubeRay"},
		"no Kueue":                 {withoutKind(capability.KueueClusterQueue), "capabilities", Warn, "Kueue: not installed", "Kueue"},
	}
}

func managerFaults() map[string]fault {
	status := func(change func(*appsv1.DeploymentStatus)) func(*clusterState) {
		return func(w *clusterState) {
			edit(w, "Deployment", installed.DeploymentName, func(d *appsv1.Deployment) { change(&d.Status) })
		}
	}
	lease := func(change func(*coordinationv1.LeaseSpec)) func(*clusterState) {
		return func(w *clusterState) { edit(w, "Lease", "", func(l *coordinationv1.Lease) { change(&l.Spec) }) }
	}
	return map[string]fault{
		"no Deployment and no Lease": {func(w *clusterState) { w.deleteObject("Deployment", ""); w.deleteObject("Lease", "") }, "manager", Fail, "does not exist in any namespace", "make deploy OVERLAY=<overlay> IMG="},
		"manager not readable": {func(w *clusterState) {
			w.set("Deployment", "", "elsewhere", "metadata", "namespace")
			w.fails = func(_, resource, namespace string) error {
				if namespace == "" && (resource == "deployments" || resource == "leases") {
					return forbidden(resource)
				}
				return nil
			}
		}, "manager", Unknown, "not allowed to list deployments.apps in all namespaces", "--manager-namespace names the namespace"},
		"scaled down": {func(w *clusterState) {
			w.set("Deployment", "", int64(0), "spec", "replicas")
			status(func(s *appsv1.DeploymentStatus) { *s = appsv1.DeploymentStatus{ObservedGeneration: 1} })(w)
		}, "manager", Fail, "scaled to zero", "kubectl -n opendatahub scale deployment odh-platform-operator-controller-manager --replicas=1"},
		"unavailable": {status(func(s *appsv1.DeploymentStatus) { s.AvailableReplicas, s.ReadyReplicas = 0, 0 }), "manager", Warn, "not available yet: 0/1", "get pods"},
		"failing replicas": {status(func(s *appsv1.DeploymentStatus) {
			s.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "no quota"}}
		}), "manager", Fail, "no quota", "describe pods"},
		"no Lease":      {func(w *clusterState) { w.deleteObject("Lease", "") }, "manager", Warn, "no replica holds the Lease", "logs"},
		"expired Lease": {lease(func(l *coordinationv1.LeaseSpec) { *l.LeaseDurationSeconds = 0 }), "manager", Warn, "no replica holds the Lease", "logs"},
		"second manager": {func(w *clusterState) { w.documents(legacyDeployment(installed.DeploymentName, "other", 1)) }, "manager", Fail,
			"Deployment other/odh-platform-operator-controller-manager: is a second manager", "kubectl -n other delete deployment"},
		"version skew": {func(w *clusterState) { w.plugin = "1.1.0" }, "version", Warn, "this program is 1.1.0, the manager 1.2.9", "release 1.2.9"},
		"bad settings": {func(w *clusterState) { w.args("--leader-elect=2") }, "settings", Fail, "--leader-elect", "docs/configuration.md"},
		"no image":     {func(w *clusterState) { w.manager(func(c *corev1.Container) { c.Env[1].Value = "" }) }, "settings", Fail, "mlflow has no default image", "as described above"},
		"no URL":       {func(w *clusterState) { w.manager(func(c *corev1.Container) { c.Env = c.Env[:2] }) }, "settings", Warn, "mlflow-url: no external address", "deploy-to-platform"},
		"all components disabled": {func(w *clusterState) {
			for _, name := range kinds.Names() {
				w.args("--enable-" + name + "=false")
			}
		}, "settings", Warn, "no component is enabled", "ENABLE_"},
		"no domain": {func(w *clusterState) { onOpenShift(w); w.args("--enable-platform=false") }, "settings", Warn, "GATEWAY_DOMAIN: empty", "params.env"},
		"unreadable setting": {func(w *clusterState) {
			w.manager(func(c *corev1.Container) {
				c.Env = append(c.Env, corev1.EnvVar{Name: "MLFLOW_URL", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
					LocalObjectReference: corev1.LocalObjectReference{Name: "params"}, Key: "a"}}})
			})
		}, "settings", Unknown, "MLFLOW_URL in Secret opendatahub/params: could not be read", "as a user who may read it"},
	}
}

// legacyDeployment returns the Deployment of a legacy operator.
func legacyDeployment(name, namespace string, replicas int) string {
	return `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: ` + namespace + `, name: ` + name + `}, spec: {replicas: ` + string(rune('0'+replicas)) + `}}`
}

// legacyLease returns a held Lease of a legacy operator.
func legacyLease(name string) string {
	return `{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {namespace: old, name: ` + name + `}, spec: {holderIdentity: pod_1, renewTime: "2026-05-04T11:59:50.000000Z", leaseDurationSeconds: 15}}`
}

func legacyFaults() map[string]fault {
	faults := map[string]fault{
		"Lease of a legacy operator": {func(w *clusterState) { w.documents(legacyLease("catalog.opendatahub.io")) }, "legacy", Fail, "Lease old/catalog.opendatahub.io: held by pod_1", "stop"},
		"still leading": {func(w *clusterState) {
			w.documents(legacyDeployment("mlflow-operator-controller-manager", "old", 0) + "\n---\n" + legacyLease("a5eb1b3b.opendatahub.io"))
		}, "legacy", Fail, "is still running", "--replicas=0"},
	}
	for _, o := range legacyOperators {
		faults[o.deployment] = fault{func(w *clusterState) { w.documents(legacyDeployment(o.deployment, "old", 1)) }, "legacy", Fail,
			"Deployment old/" + o.deployment + ": the legacy operator of " + strings.Join(o.components, ", "), "kubectl -n old scale deployment " + o.deployment + " --replicas=0"}
	}
	return faults
}

func crdFaults() map[string]fault {
	const name, kind = "mlflows.mlflow.opendatahub.io", "CustomResourceDefinition"
	on := func(name string, c func(*apiextensionsv1.CustomResourceDefinition)) func(*clusterState) {
		return func(w *clusterState) { edit(w, kind, name, c) }
	}
	return map[string]fault{
		"missing":         {func(w *clusterState) { w.deleteObject(kind, name) }, "crds", Fail, "CRD " + name + ": does not exist", "make install"},
		"not established": {on(name, func(c *apiextensionsv1.CustomResourceDefinition) { c.Status.Conditions = nil }), "crds", Fail, "not established", "describe crd " + name},
		"older schema": {on(name, func(c *apiextensionsv1.CustomResourceDefinition) {
			delete(c.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties, "replicas")
		}), "crds", Warn, "differs from the CRD of this release", "kubectl apply --server-side"},
		"missing version": {on(convertedCRD, func(c *apiextensionsv1.CustomResourceDefinition) {
			c.Spec.Versions = slices.DeleteFunc(c.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })
		}), "crds", Fail, "not served: v1beta1", "make install"},
		"stored in an older version": {on(convertedCRD, func(c *apiextensionsv1.CustomResourceDefinition) {
			c.Status.StoredVersions = []string{"v1alpha1", "v1beta1"}
		}), "crds", Warn, "objects may still be stored as v1alpha1", "STORAGE_MIGRATION"},
		"conversion without a Service": {on(convertedCRD, func(c *apiextensionsv1.CustomResourceDefinition) {
			c.Spec.Conversion.Webhook.ClientConfig.Service.Name = "gone"
		}), "crds", Fail, "(conversion): calls Service opendatahub/gone, which does not exist", "make install"},
		"conversion without CA": {on(convertedCRD, func(c *apiextensionsv1.CustomResourceDefinition) {
			c.Spec.Conversion.Webhook.ClientConfig.CABundle = nil
		}), "crds", Fail, "has no caBundle", "rollout restart"},
		"not readable": {refuse("customresourcedefinitions"), "crds", Unknown, "not allowed to get customresourcedefinitions.apiextensions.k8s.io/", "as a user with this permission"},
	}
}

func refuse(resource string) func(*clusterState) {
	return func(w *clusterState) {
		w.fails = func(_, r, _ string) error {
			if r == resource {
				return forbidden(resource)
			}
			return nil
		}
	}
}

func rightsFaults() map[string]fault {
	return map[string]fault{
		"missing verb": {func(w *clusterState) {
			edit(w, "ClusterRole", "a", func(role *rbacv1.ClusterRole) {
				for i, r := range role.Rules {
					if slices.Contains(r.Resources, "rayclusters") {
						role.Rules[i].Verbs = slices.DeleteFunc(r.Verbs, func(v string) bool { return v == "watch" })
					}
				}
			})
		}, "rights", Fail, "role odh-platform-operator-raycluster: ServiceAccount odh-platform-operator-controller-manager cannot watch rayclusters.ray.io", "of component raycluster"},
		"no ClusterRoleBinding": {func(w *clusterState) { w.deleteObject("ClusterRoleBinding", "") }, "rights", Fail, "more", "make deploy OVERLAY=<overlay> IMG="},
		// A RoleBinding is sufficient for the rules of a namespaced Role.
		"no RoleBinding": {func(w *clusterState) { w.deleteObject("RoleBinding", "") }, "rights", Fail, "leases.coordination.k8s.io", "of component manager"},
		"not readable":   {refuse("clusterrolebindings"), "rights", Unknown, "not allowed to list clusterrolebindings.rbac.authorization.k8s.io", "as a user with this permission"},
	}
}

func webhookFaults() map[string]fault {
	const kind = "ValidatingWebhookConfiguration"
	first := func(c func(*admissionregistrationv1.ValidatingWebhook)) func(*clusterState) {
		return func(w *clusterState) {
			edit(w, kind, "", func(v *admissionregistrationv1.ValidatingWebhookConfiguration) { c(&v.Webhooks[0]) })
		}
	}
	foreign := func(policy string) func(*clusterState) {
		return func(w *clusterState) {
			w.documents(`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: left-behind}, webhooks: [{name: w, failurePolicy: ` + policy +
				`, rules: [{apiGroups: [mlflow.opendatahub.io], resources: ["*"]}], clientConfig: {service: {namespace: old, name: gone}}}]}`)
		}
	}
	return map[string]fault{
		"leftover webhook":                           {foreign("Fail"), "webhooks", Fail, "calls Service old/gone, which does not exist", "kubectl delete validatingwebhookconfiguration left-behind"},
		"leftover webhook with failurePolicy Ignore": {foreign("Ignore"), "webhooks", Warn, "which does not exist", "kubectl delete validatingwebhookconfiguration left-behind"},
		"webhook with another Service": {first(func(w *admissionregistrationv1.ValidatingWebhook) { w.ClientConfig.Service.Name = "codeflare" }), "webhooks", Fail,
			"codeflare, which does not exist", "make deploy OVERLAY=<overlay> IMG="},
		"no CA":      {first(func(w *admissionregistrationv1.ValidatingWebhook) { w.ClientConfig.CABundle = nil }), "webhooks", Fail, "has no caBundle", "rollout restart"},
		"damaged CA": {first(func(w *admissionregistrationv1.ValidatingWebhook) { w.ClientConfig.CABundle = []byte("x") }), "webhooks", Fail, "holds no certificate", "rollout restart"},
		"another CA": {func(w *clusterState) {
			other := issueCertificate(w.t, noon).Data[corev1.ServiceAccountRootCAKey]
			first(func(h *admissionregistrationv1.ValidatingWebhook) { h.ClientConfig.CABundle = other })(w)
		}, "webhooks", Fail, "does not verify", "rollout restart"},
		"ignored": {first(func(w *admissionregistrationv1.ValidatingWebhook) {
			w.FailurePolicy = new(admissionregistrationv1.Ignore)
		}), "webhooks", Warn, "has failurePolicy Ignore", "make deploy OVERLAY=<overlay> IMG="},
		"missing": {func(w *clusterState) { w.deleteObject(kind, "appwrapper-validating-webhook-configuration") }, "webhooks", Fail, "does not exist, and the component appwrapper is enabled", "make deploy OVERLAY=<overlay> IMG="},
		"missing webhook with OLM": {func(w *clusterState) {
			byOLM(w)
			w.deleteObject(kind, "")
		}, "webhooks", Fail, "does not exist, and the component", "make deploy OVERLAY=<overlay> IMG="},
		"not readable": {refuse("validatingwebhookconfigurations"), "webhooks", Unknown, "not allowed to list validatingwebhookconfigurations", "as a user with this permission"},
	}
}

// byOLM changes an installation as OLM does: a configuration with another name for each webhook, a mounted certificate, and no conversion.
func byOLM(w *clusterState) {
	s := shippedManifests(w.t)
	for _, name := range slices.Sorted(maps.Keys(s.calls)) {
		kind, configuration, _ := strings.Cut(name, " ")
		w.deleteObject(kind, configuration)
		for _, call := range s.calls[name] {
			_, path, _ := strings.Cut(call, " ")
			w.documents(`{apiVersion: admissionregistration.k8s.io/v1, kind: ` + kind + `, metadata: {name: made-by-olm-` + path[1:] + `}, webhooks: [{name: w, rules: [{apiGroups: [ray.io]}],
  clientConfig: {service: {namespace: opendatahub, name: odh-platform-operator-webhook, path: ` + path + `}}}]}`)
		}
	}
	w.deleteObject("Secret", certificateSecret)
	edit(w, "CustomResourceDefinition", convertedCRD, func(c *apiextensionsv1.CustomResourceDefinition) { c.Spec.Conversion = nil })
	w.manager(func(c *corev1.Container) {
		c.VolumeMounts = []corev1.VolumeMount{{Name: "webhook-cert", MountPath: "/tmp/k8s-webhook-server/serving-certs"}}
	})
}

func certificateFaults() map[string]fault {
	return map[string]fault{
		"expired": {func(w *clusterState) {
			w.deleteObject("Secret", certificateSecret)
			w.add("v1", "Secret", issueCertificate(w.t, noon.AddDate(-11, 0, 0)))
			w.manager(func(c *corev1.Container) { c.Args = []string{"--components=platform"} }) // platform has no webhooks
			edit(w, "CustomResourceDefinition", convertedCRD, func(c *apiextensionsv1.CustomResourceDefinition) { c.Spec.Conversion = nil })
			w.objects = slices.DeleteFunc(w.objects, func(u *unstructured.Unstructured) bool { return strings.HasSuffix(u.GetKind(), "WebhookConfiguration") })
		}, "certificate", Fail, "expired on", "delete secret"},
		"empty": {func(w *clusterState) {
			edit(w, "Secret", certificateSecret, func(s *corev1.Secret) { s.Data[corev1.TLSCertKey] = nil })
		}, "certificate", Fail, "holds no certificate", "delete secret"},
		"missing":      {func(w *clusterState) { w.deleteObject("Secret", certificateSecret) }, "certificate", Warn, "does not exist", "logs"},
		"not readable": {refuse("secrets"), "certificate", Unknown, "not allowed to get secrets/" + certificateSecret + " in namespace opendatahub", "as a user with this permission"},
	}
}

const withReferences = `
{apiVersion: mlflow.opendatahub.io/v1, kind: MLflow, metadata: {name: mlflow}, spec: {
  backendStoreUriFrom: {name: db, key: uri}, envFrom: [{secretRef: {name: gone}}], caBundleConfigMap: {name: ca}}}
---
{apiVersion: v1, kind: Secret, metadata: {namespace: opendatahub, name: db}, data: {password: YQ==}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: opendatahub, name: ca}, data: {ca.crt: x}}
`

func referenceFaults() map[string]fault {
	withMLflow := func(w *clusterState) { w.documents(withReferences) }
	return map[string]fault{
		"missing key": {withMLflow, "references", Fail, "MLflow mlflow: Secret opendatahub/db has no key uri", "kubectl -n opendatahub edit secret db, and add the missing keys"},
		"missing":     {withMLflow, "references", Fail, "MLflow mlflow: Secret opendatahub/gone does not exist", "kubectl -n opendatahub create secret generic gone"},
		"not readable": {func(w *clusterState) {
			withMLflow(w)
			refuse("configmaps")(w)
		}, "references", Unknown, "not allowed to get configmaps/ca in namespace opendatahub", "as a user with this permission"},
		"missing Secret of a runtime": {func(w *clusterState) {
			w.documents(`{apiVersion: serving.kserve.io/v1alpha1, kind: ServingRuntime, metadata: {namespace: models, name: r}, spec: {multiModel: true, grpcEndpoint: "port:8085", containers: [{name: c, image: x}], imagePullSecrets: [{name: pull}]}}`)
		}, "references", Fail, "ServingRuntime models/r: Secret models/pull does not exist", "kubectl -n models create secret generic pull"},
	}
}

// Without the manager the namespace of MLflow is unknown, and so are its references.
func TestReferencesWithoutTheManager(t *testing.T) {
	w := healthy(t)
	w.deleteObject("Deployment", "")
	w.documents(withReferences)
	found := failedFindings(w.examine(), "references")
	if len(found) != 3 || found[0].Result != Unknown || found[0].Subject != "MLflow mlflow" || !strings.Contains(found[0].Found, "the namespace of the server is not known") {
		t.Errorf("got %+v, want 3 findings, the first Unknown because the namespace of MLflow is unknown", found)
	}
}

// All components share one Service, so the check reports every webhook configuration.
func TestServiceWithoutPods(t *testing.T) {
	w := healthy(t)
	w.set("EndpointSlice", "", []any{}, "endpoints")
	all := w.examine()
	if found := failedFindings(all, "webhooks"); len(found) != len(shippedManifests(t).configurations) || !strings.Contains(found[0].Found, "which has no ready pod") {
		t.Errorf("got findings for %d of %d webhook configurations, want all: %+v", len(found), len(shippedManifests(t).configurations), found)
	}
	if found := failedFindings(all, "crds"); len(found) != 1 || !strings.Contains(found[0].Found, "which has no ready pod") {
		t.Errorf("got %+v, want one finding that the Service of the conversion has no ready pod", found)
	}
}

// The certificate of the manager is for its namespace.
func TestCertificateOfAnotherNamespace(t *testing.T) {
	w := healthy(t)
	for i, u := range w.objects {
		if u.GetNamespace() == "opendatahub" {
			w.objects[i] = u.DeepCopy()
			w.objects[i].SetNamespace("elsewhere")
		}
	}
	found := failedFindings(w.examine(), "certificate")
	if len(found) != 1 || found[0].Found != "is not valid for odh-platform-operator-webhook.elsewhere.svc" {
		t.Errorf("got %+v, want one finding that the certificate is not valid for the Service", found)
	}
}

// The message of a failing API server is shown.
func TestChecksWithFailingRequests(t *testing.T) {
	w := healthy(t)
	w.fails = func(string, string, string) error { return errors.New("etcd is gone\nand more") }
	found := failedFindings(w.examine(), "crds")
	if len(found) == 0 || found[0].Result != Unknown || !strings.Contains(found[0].Found, "etcd is gone") {
		t.Errorf("got %+v, want Unknown with the error of the request", found)
	}
}

// The KubeRay of the platform is no problem. It is reported only if Routes are served, because it secures nothing without them.
func TestPlatformKubeRayIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*clusterState)
		reported bool
	}{
		"KubeRay of the platform":    {func(w *clusterState) { onOpenShift(w); platformKubeRay(w) }, true},
		"without Routes":             {platformKubeRay, false},
		"no KubeRay of the platform": {onOpenShift, false},
	} {
		w := healthy(t)
		c.change(w)
		found := slices.DeleteFunc(w.examine(), func(f Finding) bool { return f.Check != "capabilities" })
		if len(found) != 1 || found[0].Result != OK || strings.Contains(found[0].Found, "the KubeRay of the platform secures them") != c.reported {
			t.Errorf("%s: got %+v, want one OK finding that names the platform's KubeRay only if it secures clusters", name, found)
		}
	}
}

func platformKubeRay(w *clusterState) {
	w.documents(`{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: ` + capability.PlatformKubeRayConfiguration + `}, webhooks: [{name: mraycluster.kb.io, clientConfig: {url: "https://x/mutate-ray-io-v1-raycluster"}}]}`)
}
