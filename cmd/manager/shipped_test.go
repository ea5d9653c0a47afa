package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/odh-platform/odh-platform-operator/pkg/certs"
)

// entry is one webhook of the manifests.
type entry struct {
	configuration, name, path string
	service                   *admissionregistrationv1.ServiceReference
	rules                     []admissionregistrationv1.RuleWithOperations
	policy                    *admissionregistrationv1.FailurePolicyType
	effects                   *admissionregistrationv1.SideEffectClass
	versions                  []string
	mutating                  bool
}

// shippedWebhooks returns all webhooks below config/webhook.
func shippedWebhooks(t *testing.T) []entry {
	t.Helper()
	files, err := filepath.Glob("../../config/webhook/*/configurations.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("unexpected files %v, error %v", files, err)
	}
	var out []entry
	add := func(configuration, name string, c admissionregistrationv1.WebhookClientConfig, rules []admissionregistrationv1.RuleWithOperations) *entry {
		if c.Service == nil || c.Service.Path == nil {
			t.Fatalf("webhook %s has no Service with a path", name)
		}
		out = append(out, entry{configuration: configuration, name: name, path: *c.Service.Path, service: c.Service, rules: rules})
		return &out[len(out)-1]
	}
	for _, file := range files {
		path := strings.TrimPrefix(file, "../../config/")
		for _, c := range readManifests[admissionregistrationv1.MutatingWebhookConfiguration](t, path) {
			for _, w := range c.Webhooks {
				if c.Kind == "MutatingWebhookConfiguration" {
					e := add(c.Name, w.Name, w.ClientConfig, w.Rules)
					e.policy, e.effects, e.versions, e.mutating = w.FailurePolicy, w.SideEffects, w.AdmissionReviewVersions, true
				}
			}
		}
		for _, c := range readManifests[admissionregistrationv1.ValidatingWebhookConfiguration](t, path) {
			for _, w := range c.Webhooks {
				if c.Kind == "ValidatingWebhookConfiguration" {
					e := add(c.Name, w.Name, w.ClientConfig, w.Rules)
					e.policy, e.effects, e.versions = w.FailurePolicy, w.SideEffects, w.AdmissionReviewVersions
				}
			}
		}
	}
	return out
}

// webhookManager is a manager with only a webhook server.
type webhookManager struct {
	ctrl.Manager
	server webhook.Server
	scheme *runtime.Scheme
}

func (s webhookManager) GetWebhookServer() webhook.Server { return s.server }
func (s webhookManager) GetScheme() *runtime.Scheme       { return s.scheme }
func (s webhookManager) GetConfig() *rest.Config          { return &rest.Config{Host: "https://127.0.0.1"} }
func (s webhookManager) GetHTTPClient() *http.Client      { return http.DefaultClient }
func (s webhookManager) GetRESTMapper() meta.RESTMapper   { return nil }
func (s webhookManager) GetAPIReader() client.Reader      { return nil }
func (s webhookManager) GetClient() client.Client         { return nil }

// Each path of the manifests is served even if its component is disabled: the webhook configurations in a cluster do not change with the
// settings, and the API server would reject every request whose webhook is not served.
func TestEveryWebhookOfTheManifestsIsServed(t *testing.T) {
	m := webhookManager{server: webhook.NewServer(webhook.Options{}), scheme: runtime.NewScheme()}
	for _, r := range componentSpecs(&Env{}) {
		if r.Webhooks == nil {
			continue
		}
		if err := r.Webhooks(m, false); err != nil {
			t.Fatalf("%s: unexpected error: %v", r.Name, err)
		}
	}
	served := map[string]bool{}
	for _, e := range shippedWebhooks(t) {
		request := httptest.NewRequest(http.MethodPost, e.path, nil)
		if _, pattern := m.server.WebhookMux().Handler(request); pattern == "" {
			t.Errorf("%s: path %s is not served", e.name, e.path)
		}
		if served[e.path] {
			t.Errorf("%s: path %s is used twice", e.name, e.path)
		}
		served[e.path] = true
		if e.service.Name != webhookService || e.service.Namespace != "system" {
			t.Errorf("%s: unexpected Service %s in namespace %s", e.name, e.service.Name, e.service.Namespace)
		}
		if e.policy == nil || e.effects == nil || *e.effects != admissionregistrationv1.SideEffectClassNone || !slices.Equal(e.versions, []string{"v1"}) {
			t.Errorf("%s: unexpected policy %v, side effects %v or versions %v", e.name, e.policy, e.effects, e.versions)
		}
	}
}

// The CA bundle is written into exactly the shipped webhook configurations, and the manager has permission to do so.
func TestEveryConfigurationGetsCABundle(t *testing.T) {
	shipped := map[string]bool{}
	for _, e := range shippedWebhooks(t) {
		kind := certs.Validating
		if e.mutating {
			kind = certs.Mutating
		}
		shipped[fmt.Sprint(kind, " ", e.configuration)] = true
	}
	targets := map[string]bool{}
	rules := rulesInFolder(t, "manager")
	for _, r := range componentSpecs(&Env{}) {
		for _, target := range r.CABundleTargets {
			if target.Kind != certs.Mutating && target.Kind != certs.Validating {
				continue
			}
			targets[fmt.Sprint(target.Kind, " ", target.Name)] = true
			resource := "validatingwebhookconfigurations"
			if target.Kind == certs.Mutating {
				resource = "mutatingwebhookconfigurations"
			}
			for _, verb := range []string{"get", "patch"} {
				if !allows(rules, "admissionregistration.k8s.io", resource, target.Name, verb) {
					t.Errorf("%s: the manager may not %s %s %s", r.Name, verb, resource, target.Name)
				}
			}
		}
	}
	for name := range shipped {
		if !targets[name] {
			t.Errorf("no component writes the CA bundle into %s", name)
		}
	}
	for name := range targets {
		if !shipped[name] {
			t.Errorf("%s is not a shipped webhook configuration", name)
		}
	}
}

// [R29] The webhooks of ray.io apply to RayClusters only: KubeRay creates the clusters of RayJobs and RayServices, so their clusters pass
// the webhooks, too.
func TestRayWebhooksApplyToRayClustersOnly(t *testing.T) {
	found := 0
	for _, e := range shippedWebhooks(t) {
		for _, rule := range e.rules {
			if !slices.Contains(rule.APIGroups, "ray.io") && !slices.Contains(rule.APIGroups, "*") {
				continue
			}
			found++
			if !slices.Equal(rule.APIGroups, []string{"ray.io"}) || !slices.Equal(rule.APIVersions, []string{"v1"}) || !slices.Equal(rule.Resources, []string{"rayclusters"}) {
				t.Errorf("%s: unexpected rule for %v %v %v", e.name, rule.APIGroups, rule.APIVersions, rule.Resources)
			}
			want := []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}
			if !slices.Equal(rule.Operations, want) || *e.policy != admissionregistrationv1.Fail {
				t.Errorf("%s: unexpected operations %v or failurePolicy %s", e.name, rule.Operations, *e.policy)
			}
		}
	}
	if found != 2 {
		t.Errorf("got %d rules for RayClusters, want 2", found)
	}
}

// rulesInFolder returns the rules of all roles below a folder of config/rbac.
func rulesInFolder(t *testing.T, folder string) []rbacv1.PolicyRule {
	t.Helper()
	var rules []rbacv1.PolicyRule
	err := filepath.WalkDir(filepath.Join("..", "..", "config", "rbac", folder), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		for _, role := range readManifests[rbacv1.ClusterRole](t, strings.TrimPrefix(path, "../../config/")) {
			rules = append(rules, role.Rules...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// allows reports whether a rule grants a verb for an object, or for all objects if the name is empty.
func allows(rules []rbacv1.PolicyRule, group, resource, name, verb string) bool {
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		named := len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, name)
		return slices.Contains(r.APIGroups, group) && slices.Contains(r.Resources, resource) && slices.Contains(r.Verbs, verb) && named
	})
}

// A component that has caches lists and watches each kind that it caches or requires: its own role or the role of the manager allows both.
func TestEveryRoleCoversItsWatches(t *testing.T) {
	managerRules := rulesInFolder(t, "manager")
	for _, r := range componentSpecs(&Env{}) {
		if len(r.Caches) == 0 {
			continue
		}
		rules := slices.Concat(managerRules, rulesInFolder(t, r.Name))
		for _, need := range r.Caches {
			resource, _ := meta.UnsafeGuessKindToResource(need.Kind)
			for _, verb := range []string{"list", "watch"} {
				if !allowsAny(rules, need.Kind.Group, resource.Resource, verb) {
					t.Errorf("%s: no role allows to %s %s", r.Name, verb, resource.GroupResource())
				}
			}
		}
		for _, kind := range r.Requires {
			resource, _ := meta.UnsafeGuessKindToResource(kind)
			if !allowsAny(rules, kind.Group, resource.Resource, "watch") {
				t.Errorf("%s: no role allows to watch %s", r.Name, resource.GroupResource())
			}
		}
		for essential := range essentialResources([]componentSpec{r}) {
			if !allowsAny(rules, essential.Group, essential.Resource, "list") {
				t.Errorf("%s: %s is essential, and no role allows to list it", r.Name, essential)
			}
		}
	}
}

// allowsAny reports whether a rule grants a verb for at least one object of a resource.
func allowsAny(rules []rbacv1.PolicyRule, group, resource, verb string) bool {
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.APIGroups, group) && slices.Contains(r.Resources, resource) && slices.Contains(r.Verbs, verb)
	})
}

// [R36] The role allows the writes of the RayCluster controller, including the host of a Route when it is created and when the domain of
// the cluster changes.
func TestRayClusterPermissions(t *testing.T) {
	rules := rulesInFolder(t, "raycluster")
	for _, tc := range []struct {
		group, resource string
		verbs           []string
	}{
		{"", "secrets", []string{"create", "patch", "delete", "get"}}, {"", "services", []string{"create", "patch", "delete"}},
		{"", "serviceaccounts", []string{"create", "patch", "delete", "get"}}, {"", "configmaps", []string{"create", "patch", "delete"}},
		{"", "pods", []string{"list", "watch", "patch", "delete"}},
		{"networking.k8s.io", "ingresses", []string{"create", "patch", "delete"}}, {"networking.k8s.io", "networkpolicies", []string{"create", "patch", "delete"}},
		{"route.openshift.io", "routes", []string{"create", "patch", "delete"}}, {"route.openshift.io", "routes/custom-host", []string{"create", "update"}},
		{"gateway.networking.k8s.io", "httproutes", []string{"create", "patch", "delete"}},
		{"gateway.networking.k8s.io", "backendtlspolicies", []string{"create", "patch", "delete"}}, {"cert-manager.io", "certificates", []string{"create", "patch", "delete"}},
		{"rbac.authorization.k8s.io", "clusterrolebindings", []string{"create", "patch", "delete"}},
		{"ray.io", "rayclusters", []string{"get", "patch"}}, {"ray.io", "rayclusters/finalizers", []string{"update"}},
	} {
		for _, verb := range tc.verbs {
			if !allows(rules, tc.group, tc.resource, "", verb) {
				t.Errorf("the controller may not %s %s", verb, tc.resource)
			}
		}
	}
}
