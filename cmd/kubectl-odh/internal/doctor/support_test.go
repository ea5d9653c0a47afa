package doctor

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/go-logr/logr"

	"github.com/odh-platform/odh-platform-operator/cmd/internal/kinds"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/installed"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/status/health"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

var readOnce = sync.OnceValues(builtIn)

// ships is what this program was built with.
func ships(t *testing.T) Shipped {
	t.Helper()
	s, err := readOnce()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// settings are those of a manager with every component on.
func settings(t *testing.T, args ...string) config.Config {
	t.Helper()
	c, err := load(args...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func load(args ...string) (config.Config, error) {
	environment := map[string]string{"POD_NAMESPACE": "opendatahub", "MLFLOW_IMAGE": "quay.io/x/mlflow:1", "MLFLOW_URL": "https://data.example.org"}
	args = append([]string{"--components=" + strings.Join(kinds.Names(), ",")}, args...)
	return config.Load(config.Program{Components: kinds.Names(), MLflowVersion: "3.14.0"}, args,
		func(name string) (string, bool) { v, ok := environment[name]; return v, ok }, func(string) ([]byte, error) { return nil, nil })
}

// authority issues the manager's certificate at a moment.
func authority(t *testing.T, at time.Time) *corev1.Secret {
	t.Helper()
	c := fake.NewClientBuilder().Build()
	key := types.NamespacedName{Namespace: "opendatahub", Name: certificateSecret}
	a := certs.NewAuthority(certs.Options{
		Client: c, Secret: key, DNSNames: []string{webhookService + ".opendatahub.svc"}, Clock: clocktesting.NewFakeClock(at), Log: logr.Discard(),
	})
	if _, err := a.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	s := &corev1.Secret{}
	if err := c.Get(t.Context(), key, s); err != nil {
		t.Fatal(err)
	}
	return s
}

// kind is one that is served.
func kind(gvk schema.GroupVersionKind) fetch.Kind {
	return fetch.Kind{GroupVersionKind: gvk, Resource: strings.ToLower(gvk.Kind) + "s", Preferred: true}
}

// everything that a plain cluster with neighbours serves.
func everything() []fetch.Kind {
	var out []fetch.Kind
	for _, c := range kinds.Components() {
		for _, k := range c.Kinds {
			out = append(out, kind(k.GroupVersionKind))
		}
	}
	for _, k := range []schema.GroupVersionKind{capability.HTTPRoute, capability.KueueWorkload, capability.ServiceMonitor} {
		out = append(out, kind(k))
	}
	return out
}

func onOpenShift(f *Facts) {
	f.Served = fetch.NewSet(append(everything(), kind(capability.Route), kind(capability.OpenShiftIngress))...)
}

// healthy is an installation with nothing to complain about.
func healthy(t *testing.T) *Facts {
	t.Helper()
	s := ships(t)
	f := &Facts{
		Now: noon, Plugin: "1.2.3", Server: "v1.34.1", Served: fetch.NewSet(everything()...), CRDs: map[string]*apiextensionsv1.CustomResourceDefinition{},
		Services: map[types.NamespacedName]int{}, Unread: map[string][]Finding{}, Certificate: authority(t, noon.Add(-time.Hour)),
	}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "opendatahub", Name: installed.DeploymentName}}
	d.Spec.Template.Spec.ServiceAccountName = installed.DeploymentName
	f.Manager = installed.Manager{
		Deployment: d, Health: health.Verdict{State: health.Healthy}, Image: "quay.io/x/manager:v1.2.9", Version: "v1.2.9",
		Lease:    &installed.Lease{Namespace: "opendatahub", Holder: "pod_1", Renewed: noon, Expires: noon.Add(time.Minute)},
		Settings: installed.Settings{Known: true, Config: settings(t)},
	}
	key := types.NamespacedName{Namespace: "opendatahub", Name: webhookService}
	f.Services[key] = 2
	bundle := f.Certificate.Data[corev1.ServiceAccountRootCAKey]
	for name, crd := range s.CRDs {
		live := crd.DeepCopy()
		live.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
		if name == "modelregistries.modelregistry.opendatahub.io" {
			live.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
				ClientConfig: &apiextensionsv1.WebhookClientConfig{CABundle: bundle, Service: &apiextensionsv1.ServiceReference{Namespace: key.Namespace, Name: key.Name}},
			}}
		}
		f.CRDs[name] = live
	}
	for name := range s.Configurations {
		kind, configuration, _ := strings.Cut(name, " ")
		f.Webhooks = append(f.Webhooks, Webhook{Kind: kind, Configuration: configuration, Name: "w", Policy: admissionregistrationv1.Fail, CABundle: bundle,
			Service: &admissionregistrationv1.ServiceReference{Namespace: key.Namespace, Name: key.Name}})
	}
	slices.SortFunc(f.Webhooks, func(a, b Webhook) int { return cmp.Compare(a.Kind+a.Configuration, b.Kind+b.Configuration) })
	for _, role := range s.Roles {
		if role.Inside {
			f.Granted.Inside = append(f.Granted.Inside, role.Rules...)
			continue
		}
		f.Granted.Everywhere = append(f.Granted.Everywhere, role.Rules...)
	}
	return f
}

// of returns the findings of one check that are not ok.
func of(found []Finding, check string) []Finding {
	return slices.DeleteFunc(slices.Clone(found), func(f Finding) bool { return f.Check != check || f.Result == OK })
}
