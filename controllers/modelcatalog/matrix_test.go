package modelcatalog

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/server"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/test/fakeapi"
)

// variant is a combination of the parameters that select the objects of a catalog.
type variant struct{ ocp, gateway, admins, skip, external, closed bool }

func (v variant) catalog() *aihubv1alpha1.Catalog {
	c := sample()
	if v.external {
		c.Spec.Database = &aihubv1alpha1.CatalogDatabase{External: &aihubv1alpha1.ExternalDatabase{Host: "db"}}
	}
	if v.closed {
		c.Spec.Access = &aihubv1alpha1.CatalogAccess{Authenticated: server.Disabled}
	}
	return c
}

func (v variant) inputs() resources.Inputs {
	in := openShift()
	if in.SkipDatabase = v.skip; !v.ocp {
		in.Served = capability.NewSet(capability.HTTPRoute, capability.ReferenceGrant)
	}
	if v.gateway {
		behindGateway(&in)
	}
	if v.admins {
		in.AdminGroups = []string{"a", "b"}
	}
	return in
}

// [modelregistry-75] [modelregistry-79] [modelregistry-82] [modelregistry-83] The objects in every variant, each with the required labels
// and an owner reference if it can have one.
func TestObjectsOfEveryVariant(t *testing.T) {
	always := func(variant) bool { return true }
	ocp := func(v variant) bool { return v.ocp }
	behind := func(v variant) bool { return v.ocp && v.gateway }
	database := func(v variant) bool { return !v.skip && !v.external }
	rows := map[string]func(variant) bool{
		"ServiceAccount/model-catalog": always, "ConfigMap/default-catalog-sources": always, "Deployment/model-catalog": always,
		"Service/model-catalog": always, "Role/model-catalog": always, "Role/model-catalog-admin": always,
		"RoleBinding/model-catalog-authenticated": func(v variant) bool { return !v.closed },
		"RoleBinding/model-catalog-admin-binding": func(v variant) bool { return v.admins },
		"Deployment/model-catalog-postgres":       database, "Service/model-catalog-postgres": database, "NetworkPolicy/model-catalog-postgres": database,
		"NetworkPolicy/model-catalog-egress": always, "NetworkPolicy/model-catalog-postgres-egress": database,
		"ConfigMap/model-catalog-kube-rbac-proxy-config": always, "ClusterRoleBinding/model-catalog-auth-delegator": always,
		"Route/model-catalog-https": ocp, "NetworkPolicy/model-catalog-https-route": ocp,
		"NetworkPolicy/model-catalog-ingress": func(v variant) bool { return !v.ocp },
		"HTTPRoute/model-catalog":             behind, "ReferenceGrant/allow-gateway-model-catalog": behind,
	}
	for bits := range 64 {
		on := func(bit int) bool { return bits&(1<<bit) != 0 }
		v := variant{on(0), on(1), on(2), on(3), on(4), on(5)}
		var want, got []string
		for object, when := range rows {
			if when(v) {
				want = append(want, object)
			}
		}
		c := v.catalog()
		for _, o := range buildObjects(t, c, v.inputs()) {
			name := o.GetKind() + "/" + o.GetName()
			got = append(got, name)
			component := "model-catalog"
			if strings.Contains(name, "/model-catalog-postgres") {
				component = "model-catalog-postgres"
			}
			for key, value := range map[string]string{
				"app": "model-catalog", "component": component, "app.kubernetes.io/name": "model-catalog", "app.kubernetes.io/instance": "model-catalog",
				"app.kubernetes.io/component": component, "app.kubernetes.io/created-by": "model-registry-operator",
				"app.kubernetes.io/part-of": "model-catalog", "app.kubernetes.io/managed-by": "model-registry-operator",
			} {
				if o.GetLabels()[key] != value {
					t.Errorf("%+v: %s has %s=%s", v, name, key, o.GetLabels()[key])
				}
			}
			ownable := o.GetKind() != "ClusterRoleBinding" && o.GetKind() != "HTTPRoute"
			if metav1.IsControlledBy(o, c) != ownable || len(o.GetOwnerReferences()) > 1 {
				t.Errorf("%+v: %s is owned by %v", v, name, o.GetOwnerReferences())
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", v, diff)
		}
	}
}

// [modelregistry-97] Any sources are arguments between those of users and the metrics, ordered by name, which is their precedence; each has
// a volume, and a mount at the path of its argument.
func TestAnySourcesAreServed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]([a-z0-9-]{0,53}[a-z0-9])?`), 0, 60, rapid.ID[string]).Draw(t, "names")
		v := selectSources(validSources(names...), nil, always)
		in := kubernetes()
		in.Sources = v.mounted
		desired := resources.ServerDeployment(sample(), in)
		pod := desired.Spec.Template.Spec
		server := pod.Containers[0]
		want := []string{"--listen=0.0.0.0:8080"}
		for _, folder := range []string{"default-sources", "user-model-sources", "user-mcp-sources", "user-agent-sources", "user-serving-runtime-sources"} {
			want = append(want, "--catalogs-path=/data/"+folder+"/sources.yaml")
		}
		slices.Sort(names)
		if len(names) > maxSources {
			names = names[:maxSources]
		}
		for _, name := range names {
			want = append(want, "--catalogs-path=/data/labeled-sources/"+name+"/sources.yaml")
		}
		if diff := cmp.Diff(append(want, "--performance-metrics=/shared-benchmark-data"), server.Args); diff != "" {
			t.Fatalf("arguments (-want +got):\n%s", diff)
		}
		mounted := map[string]string{}
		for _, m := range server.VolumeMounts {
			mounted[*m.Name] = *m.MountPath
		}
		found := 0
		for _, volume := range pod.Volumes {
			name, labelled := strings.CutPrefix(*volume.Name, "labeled-")
			if !labelled {
				continue
			}
			found++
			if len(*volume.Name) > 63 || *volume.ConfigMap.Name != name || mounted[*volume.Name] != "/data/labeled-sources/"+name {
				t.Fatalf("volume %s of ConfigMap %s at %s", *volume.Name, *volume.ConfigMap.Name, mounted[*volume.Name])
			}
		}
		if found != len(names) {
			t.Fatalf("%d volumes for %d sources", found, len(names))
		}
	})
}

// failAt fails the n-th request and counts requests.
func (b *testEnv) failAt(n int) (calls *int) {
	calls = new(int)
	b.fail = func(string) error {
		if *calls++; *calls == n {
			return errBroken
		}
		return nil
	}
	return calls
}

// [modelregistry-100] If any request of the first reconcile fails, the error is returned, and later reconciles create the missing objects:
// none twice or with another password.
func TestFaultAtEveryCall(t *testing.T) {
	fakeapi.Exhaustive(t)
	b := newTestEnv(t, sample())
	calls := b.failAt(0)
	if _, err := b.reconcile(); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= *calls; n++ {
		b := newTestEnv(t, sample())
		b.failAt(n)
		if _, err := b.reconcile(); !errors.Is(err, errBroken) {
			t.Errorf("call %d: ended with %v", n, err)
		}
		b.fail = failRandomly(0)
		secret := &corev1.Secret{ObjectMeta: nameMeta(resources.DatabaseName)}
		made := b.get(secret)
		before := string(secret.Data[resources.KeyPassword])
		b.reconcileUntilStable()
		for _, o := range plainCatalogObjects() {
			if !b.get(o) {
				t.Errorf("call %d: %T %s is not there", n, o, o.GetName())
			}
		}
		if after := string(must(b, secret).Data[resources.KeyPassword]); after == "" || made && before != after {
			t.Errorf("call %d: the password is another one", n)
		}
	}
}

// Sources of users are kept through all changes of settings, and the next catalog uses them.
func TestJourney(t *testing.T) {
	b := newTestEnv(t, sample()).onOpenShift()
	b.reconcileUntilStable()
	userSource := "catalogs:\n- id: mine # ours\n"
	sources := &corev1.ConfigMap{ObjectMeta: nameMeta(resources.ModelSources)}
	b.update(sources, func() { sources.Data[resources.SourcesKey] = userSource })
	c := sample()
	for i, change := range []func(*aihubv1alpha1.CatalogSpec){
		func(s *aihubv1alpha1.CatalogSpec) {
			s.Access = &aihubv1alpha1.CatalogAccess{Authenticated: server.Disabled}
		},
		withExternal(aihubv1alpha1.ExternalDatabase{Host: "db"}),
		func(s *aihubv1alpha1.CatalogSpec) { *s = aihubv1alpha1.CatalogSpec{} },
		withResources(&corev1.ResourceRequirements{}, nil),
	} {
		b.update(c, func() { change(&c.Spec) })
		b.reconcileUntilStable()
		b.restart()
		b.reconcileUntilStable()
		if got := must(b, sources).Data[resources.SourcesKey]; got != userSource || len(sources.OwnerReferences) > 0 {
			t.Errorf("step %d: sources %q, owners %v", i, got, sources.OwnerReferences)
		}
	}
	if err := b.server.Delete(t.Context(), must(b, sample())); err != nil {
		t.Fatal(err)
	}
	if _, err := b.reconcile(); err != nil || b.get(sample()) {
		t.Fatalf("the object was not deleted: %v", err)
	}
	if got := must(b, sources).Data[resources.SourcesKey]; got != userSource {
		t.Errorf("deleted with the catalog: %q", got)
	}
	for _, o := range append(plainCatalogObjects(), liveRoute()) { // as the garbage collector does
		if b.get(o) && metav1.IsControlledBy(o, sample()) {
			if err := b.server.Delete(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	next := sample()
	next.UID = "next"
	b.create(next)
	b.restart()
	b.reconcileUntilStable()
	if d := must(b, &appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}); !metav1.IsControlledBy(d, next) {
		t.Errorf("the Deployment belongs to %v", d.OwnerReferences)
	}
	if got := must(b, sources).Data[resources.SourcesKey]; got != userSource {
		t.Errorf("the next catalog wrote %q", got)
	}
}
