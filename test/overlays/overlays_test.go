package overlays

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// clusterScoped are the cluster-scoped kinds. All other objects are in the namespace of the overlay.
var clusterScoped = []string{
	"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "MutatingWebhookConfiguration", "Namespace", "ValidatingWebhookConfiguration",
	"ConsoleQuickStart",
}

// Every namespaced object, and every referenced ServiceAccount and Service, is in the namespace of the overlay.
func TestObjectsAreInNamespaceOfOverlay(t *testing.T) {
	forEachOverlay(t, func(t *testing.T, name string) {
		want := namespaces[name]
		for _, object := range shipped(t, name) {
			if slices.Contains(clusterScoped, object.GetKind()) {
				if object.GetNamespace() != "" {
					t.Errorf("%s has namespace %s", title(object), object.GetNamespace())
				}
			} else if object.GetNamespace() != want {
				t.Errorf("%s is in namespace %q, want %q", title(object), object.GetNamespace(), want)
			}
			for _, namespace := range references(object) {
				if namespace != want {
					t.Errorf("%s references namespace %q, want %q", title(object), namespace, want)
				}
			}
		}
	})
}

var referencePath = regexp.MustCompile(`(clientConfig\.service|^\.subjects\[\d+\])\.namespace$`)

// references returns the namespaces of the ServiceAccounts and Services that an object references.
func references(object *unstructured.Unstructured) []string {
	var found []string
	walk(object.Object, "", func(path, text string) {
		if referencePath.MatchString(path) {
			found = append(found, text)
		}
	})
	return found
}

// An overlay contains each object once.
func TestObjectsAreUnique(t *testing.T) {
	forEachOverlay(t, func(t *testing.T, name string) {
		seen := map[string]bool{}
		for _, object := range shipped(t, name) {
			key := object.GroupVersionKind().GroupKind().String() + " " + object.GetNamespace() + "/" + object.GetName()
			if seen[key] {
				t.Errorf("duplicate object %s", key)
			}
			seen[key] = true
		}
		if len(seen) < 60 {
			t.Errorf("%d objects, want at least 60", len(seen))
		}
	})
}

// The rendered objects contain no placeholders.
func TestAllPlaceholdersAreReplaced(t *testing.T) {
	placeholder := regexp.MustCompile(`(?i)\$\(|\$\{|placeholder|^system$|^controller(:latest)?$|REPLACE|TODO|CERTIFICATE_NAMESPACE`)
	forEachOverlay(t, func(t *testing.T, name string) {
		for _, object := range shipped(t, name) {
			switch object.GetKind() {
			case "CustomResourceDefinition", "Template", "PrometheusRule", "ConfigMap": // contain placeholders of other programs
				continue
			}
			walk(object.Object, "", func(path, text string) {
				// The manager recognizes this URL as unset, and the kubelet expands the variable.
				text = strings.ReplaceAll(strings.ReplaceAll(text, config.PlaceholderURL, ""), "$(NAMESPACE)", "")
				if placeholder.MatchString(text) {
					t.Errorf("%s: %s is %q", title(object), path, text)
				}
			})
		}
	})
}

// A platform deletes the objects of an overlay, which must not include the namespace with the objects of users.
func TestPlatformOverlaysContainNoNamespace(t *testing.T) {
	forEachOverlay(t, func(t *testing.T, name string) {
		namespace := shipped(t, name).find("Namespace", namespaces[name])
		if want := name == "kubernetes" || name == "openshift"; (namespace != nil) != want {
			t.Fatalf("Namespace exists: %t, want %t", namespace != nil, want)
		}
		if namespace != nil && (namespace.GetLabels()[keep] != "namespace" || namespace.GetLabels()["pod-security.kubernetes.io/warn"] != "restricted") {
			t.Errorf("labels %v, want %s=namespace and the Pod Security level restricted", namespace.GetLabels(), keep)
		}
	})
}

const keep = "odh-platform-operator/keep"

// kept maps the kinds that `make undeploy` always keeps to the value of their label.
var kept = map[string]string{"CustomResourceDefinition": "crd", "Namespace": "namespace", "PersistentVolumeClaim": "data"}

// Objects of the kinds in kept have the label. Other objects have no label, or the value data.
func TestObjectsKeptByUndeployHaveLabel(t *testing.T) {
	forEachOverlay(t, func(t *testing.T, name string) {
		for _, object := range shipped(t, name) {
			label := object.GetLabels()[keep]
			if want := kept[object.GetKind()]; label != want && (want != "" || label != "data") {
				t.Errorf("%s: label %q, want %q", title(object), label, want)
			}
		}
	})
}

// Selectors are the same in every overlay, because the selector of a Deployment is immutable. The label platform.opendatahub.io/manager is
// reserved, because pods of custom resources must not match the selectors of the manager.
func TestSelectorsAreEqualInOverlays(t *testing.T) {
	want := map[string]string{"control-plane": "controller-manager", "app.kubernetes.io/name": "odh-platform-operator", "platform.opendatahub.io/manager": "odh-platform-operator"}
	forEachOverlay(t, func(t *testing.T, name string) {
		all := shipped(t, name)
		deployment := all.deployment(t)
		for description, got := range map[string]map[string]string{
			"selector": deployment.Spec.Selector.MatchLabels, "template": deployment.Spec.Template.Labels,
			"metrics": selectorOf(t, all, "odh-platform-operator-metrics"), "webhook": selectorOf(t, all, "odh-platform-operator-webhook"),
			"network policy": policySelectorOf(t, all), "disruption budget": budgetSelectorOf(t, all),
		} {
			if !maps.Equal(got, want) {
				t.Errorf("%s: got %v, want %v", description, got, want)
			}
		}
		platform := name == "odh" || name == "rhoai"
		if got := deployment.Labels["opendatahub.io/component"]; (got == "true") != platform {
			t.Errorf("label opendatahub.io/component is %q, want true only on a platform", got)
		}
	})
}

func policySelectorOf(t *testing.T, all objects) map[string]string {
	t.Helper()
	policy := &networkingv1.NetworkPolicy{}
	all.into(t, "NetworkPolicy", "odh-platform-operator-controller-manager", policy)
	return policy.Spec.PodSelector.MatchLabels
}

func budgetSelectorOf(t *testing.T, all objects) map[string]string {
	t.Helper()
	budget := &policyv1.PodDisruptionBudget{}
	all.into(t, "PodDisruptionBudget", "odh-platform-operator-controller-manager", budget)
	return budget.Spec.Selector.MatchLabels
}

func selectorOf(t *testing.T, all objects, name string) map[string]string {
	t.Helper()
	service := &corev1.Service{}
	all.into(t, "Service", name, service)
	return service.Spec.Selector
}

// On OpenShift the service CA issues the certificate of the metrics endpoint. The manager issues that of the webhooks, so no other
// client may write a CA into their configurations.
func TestCertificatesOnOpenShift(t *testing.T) {
	const annotation, secret, flag = "service.beta.openshift.io/serving-cert-secret-name", "odh-platform-operator-metrics-tls", "--metrics-cert-path=/etc/metrics-certs"
	forEachOverlay(t, func(t *testing.T, name string) {
		all := shipped(t, name)
		manager, pod := all.manager(t), all.deployment(t).Spec.Template.Spec
		service := all.find("Service", "odh-platform-operator-metrics")
		if name == "kubernetes" {
			if len(service.GetAnnotations()) > 0 || slices.Contains(manager.Args, flag) || len(pod.Volumes) > 0 {
				t.Errorf("the certificate is configured on plain Kubernetes: annotations %v, arguments %v, volumes %v", service.GetAnnotations(), manager.Args, pod.Volumes)
			}
			return
		}
		if service.GetAnnotations()[annotation] != secret || !slices.Contains(manager.Args, flag) {
			t.Errorf("the certificate is not configured: annotations %v, arguments %v", service.GetAnnotations(), manager.Args)
		}
		if len(pod.Volumes) != 1 || pod.Volumes[0].Secret.SecretName != secret || manager.VolumeMounts[0].MountPath != "/etc/metrics-certs" {
			t.Errorf("the certificate is not mounted: volumes %+v, mounts %+v", pod.Volumes, manager.VolumeMounts)
		}
		for _, object := range all {
			if strings.HasSuffix(object.GetKind(), "WebhookConfiguration") && object.GetAnnotations()["service.beta.openshift.io/inject-cabundle"] == "true" {
				t.Errorf("%s: both the service CA and the manager write the CA", title(object))
			}
		}
		if annotations := all.find("Service", "odh-platform-operator-webhook").GetAnnotations(); len(annotations) > 0 {
			t.Errorf("the webhook Service has annotations %v", annotations)
		}
	})
}

// Two replicas serve webhooks. On OpenShift the Lease outlasts an outage of the API server of one minute; the overlay kubernetes has the
// defaults of client-go.
func TestReplicasAndLease(t *testing.T) {
	forEachOverlay(t, func(t *testing.T, name string) {
		all := shipped(t, name)
		if replicas := *all.deployment(t).Spec.Replicas; replicas != 2 {
			t.Errorf("%d replicas, want 2", replicas)
		}
		want := config.LeaderElection{LeaseDuration: 137 * time.Second, RenewDeadline: 107 * time.Second, RetryPeriod: 26 * time.Second}
		if name == "kubernetes" {
			want = config.LeaderElection{LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second}
		}
		got := load(t, all).LeaderElection
		if !got.Enabled || got.LeaseDuration != want.LeaseDuration || got.RenewDeadline != want.RenewDeadline || got.RetryPeriod != want.RetryPeriod {
			t.Errorf("leader election %+v, want %+v", got, want)
		}
	})
}
