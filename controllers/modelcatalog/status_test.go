package modelcatalog

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/server"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/pkg/status/serving"
)

func (b *testEnv) available() metav1.Condition {
	b.Helper()
	got, _ := conditions.Get(must(b, sample()).Status.Conditions, ConditionAvailable)
	return got
}

// changeStatus is update for the status written by controllers of Kubernetes.
func (b *testEnv) changeStatus(o client.Object, edit func()) {
	b.Helper()
	must(b, o)
	edit()
	if err := b.server.SubResource("status").Update(b.Context(), o); err != nil {
		b.Fatal(err)
	}
}

// rollOut sets the status of a Deployment and its EndpointSlices like the controllers of Kubernetes.
func (b *testEnv) rollOut(since time.Duration) {
	b.Helper()
	d := &appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}
	b.changeStatus(d, func() { d.Status = running(since).Status; d.Status.ObservedGeneration = d.Generation })
	labelled := nameMeta("model-catalog-x")
	labelled.Labels = map[string]string{discoveryv1.LabelServiceName: resources.Name}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: labelled, Endpoints: endpoints(new(true), "10.0.0.1")[0].Endpoints, AddressType: discoveryv1.AddressTypeIPv4}
	if !b.get(slice.DeepCopy()) {
		b.create(slice)
	}
}

// The condition follows the rollout until the catalog is available, with requeues where no event occurs.
func TestStatusFollowsTheRollout(t *testing.T) {
	b := newTestEnv(t, sample())
	result, err := b.reconcile()
	if err != nil || result.RequeueAfter != reconciler.RequeueUnavailable || b.available().Reason != serving.ReasonStarting {
		t.Errorf("at first: %+v, %v, %+v", result, err, b.available())
	}
	b.rollOut(time.Second)
	if result, err = b.reconcile(); err != nil || b.available().Reason != serving.ReasonCooldown || result.RequeueAfter > serving.Cooldown {
		t.Errorf("a moment later: %+v, %v, %+v", result, err, b.available())
	}
	b.stepClock(serving.Cooldown)
	b.reconcileUntilStable()
	if got := b.available(); got.Status != metav1.ConditionTrue || got.Reason != serving.ReasonAvailable || got.Message != "Deployment is available" {
		t.Errorf("then: %+v", got)
	}
	d := &appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}
	b.changeStatus(d, func() {
		d.Status.Conditions[0].Status = corev1.ConditionFalse
		d.Status.Conditions[0].Message = "stopped"
	})
	pod := &corev1.Pod{ObjectMeta: nameMeta("pod")}
	pod.Labels = resources.Selector(resources.Name)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{waitingStatus("catalog", "ErrImagePull", "no such image")}
	b.create(pod)
	database := pod.DeepCopy()
	database.ResourceVersion, database.Name, database.Labels = "", "another", resources.Selector(resources.DatabaseName)
	database.Status.ContainerStatuses = []corev1.ContainerStatus{waitingStatus("postgresql", "ErrImagePull", "[D18] not this one")}
	b.create(database)
	const ofDatabase = `; its database: image "" of container postgresql cannot be pulled; check its name, the registry and the pull secrets`
	b.reconcileUntilStable()
	if got := b.available(); got.Reason != ReasonConfiguration || got.Message != "container catalog waiting: no such image"+ofDatabase {
		t.Errorf("got condition %+v, want the waiting container in the message", got)
	}
	if err := b.server.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	b.reconcileUntilStable()
	if got := b.available(); got.Message != "Deployment is unavailable: stopped"+ofDatabase {
		t.Errorf("got condition %+v without a pod, want the message of the Deployment", got)
	}
}

// Conditions do not change for the milliseconds until the Deployment controller has observed a change.
func TestStatusWaitsForTheDeploymentController(t *testing.T) {
	b := newTestEnv(t, sample())
	b.reconcileUntilStable()
	b.rollOut(time.Hour)
	b.reconcileUntilStable()
	d := &appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}
	b.changeStatus(d, func() { d.Status.UnavailableReplicas = 1 })
	b.update(d, func() { d.Generation = d.Status.ObservedGeneration + 1 })
	result, err := b.reconcile()
	list := must(b, sample()).Status.Conditions
	if err != nil || result.RequeueAfter != reconciler.RequeueSoon || !conditions.IsTrue(list, ConditionAvailable) || !conditions.IsTrue(list, conditions.Ready) {
		t.Errorf("got %+v, error %v, conditions %+v, want a requeue and the previous conditions", result, err, list)
	}
}

// Each deleted object is recreated, and nothing else is written.
func TestDeletedObjectsAreRecreated(t *testing.T) {
	for _, o := range plainCatalogObjects() {
		b := newTestEnv(t, sample())
		b.reconcileUntilStable()
		before := o.DeepCopyObject().(client.Object)
		if err := b.server.Delete(t.Context(), must(b, before)); err != nil {
			t.Fatal(err)
		}
		b.reconcileUntilStable()
		must(b, o)
	}
}

// Foreign labels and fields are kept [D5], and an object that lost its labels is found [D8].
func TestForeignFieldsAreKept(t *testing.T) {
	b := newTestEnv(t, sample())
	b.reconcileUntilStable()
	account := &corev1.ServiceAccount{ObjectMeta: nameMeta(resources.Name)}
	b.update(account, func() {
		account.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}}
		account.Labels["theirs"] = "1"
		delete(account.Labels, names.OperatorLabel)
	})
	b.reconcileUntilStable()
	must(b, account)
	if account.Labels["theirs"] != "1" || len(account.ImagePullSecrets) != 1 || !isManaged(account) {
		t.Errorf("labels %v, pull secrets %v", account.Labels, account.ImagePullSecrets)
	}
}

// The switches of the spec delete objects and create them again.
func TestDisabledFeaturesDeleteAndRecreateObjects(t *testing.T) {
	b := newTestEnv(t, sample())
	b.reconcileUntilStable()
	c := sample()
	b.update(c, func() {
		c.Spec.Proxy = &aihubv1alpha1.CatalogProxy{Mode: server.Disabled}
		c.Spec.Access = &aihubv1alpha1.CatalogAccess{Authenticated: server.Disabled}
		c.Spec.Database = &aihubv1alpha1.CatalogDatabase{External: &aihubv1alpha1.ExternalDatabase{Host: "db", SecretName: "db"}}
	})
	b.reconcileUntilStable()
	off := []client.Object{
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: resources.DelegatorBinding}}, &corev1.ConfigMap{ObjectMeta: nameMeta(resources.ProxyConfig)},
		&rbacv1.RoleBinding{ObjectMeta: nameMeta(resources.ReadersBinding)}, &appsv1.Deployment{ObjectMeta: nameMeta(resources.DatabaseName)}, &corev1.Service{ObjectMeta: nameMeta(resources.DatabaseName)},
	}
	for _, o := range off {
		if b.get(o) {
			t.Errorf("%T %s is left", o, o.GetName())
		}
	}
	must(b, &corev1.Secret{ObjectMeta: nameMeta(resources.DatabaseName)}) // its password is kept for the way back
	b.update(c, func() { c.Spec = aihubv1alpha1.CatalogSpec{} })
	b.reconcileUntilStable()
	for _, o := range off {
		must(b, o)
	}
}

// A database is not deleted by SkipDatabase.
func TestSkippedDatabaseIsNotDeleted(t *testing.T) {
	b := newTestEnv(t, sample())
	b.reconcileUntilStable()
	b.r.settings.SkipCatalogDatabase = true
	b.reconcileUntilStable()
	must(b, &appsv1.Deployment{ObjectMeta: nameMeta(resources.DatabaseName)})
	must(b, &corev1.Secret{ObjectMeta: nameMeta(resources.DatabaseName)})

	b = newTestEnv(t, sample())
	b.r.settings.SkipCatalogDatabase = true
	b.reconcileUntilStable()
	if b.get(&appsv1.Deployment{ObjectMeta: nameMeta(resources.DatabaseName)}) || b.get(&corev1.Secret{ObjectMeta: nameMeta(resources.DatabaseName)}) {
		t.Error("a Deployment or Secret of a database was created")
	}
}

// Objects restored from a backup refer to an earlier UID of the Catalog.
func TestRestoredObjects(t *testing.T) {
	service := &corev1.Service{ObjectMeta: nameMeta(resources.Name)}
	service.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: aihubv1alpha1.GroupVersion.String(), Kind: aihubv1alpha1.Kind, Name: "catalog", UID: "earlier", Controller: new(true)}}
	b := newTestEnv(t, sample(), service)
	b.reconcileUntilStable()
	if refs := must(b, service).OwnerReferences; len(refs) != 1 || refs[0].UID != sample().UID {
		t.Errorf("owners %v", refs)
	}
}

// A paused Catalog changes nothing and can still be deleted.
func TestPaused(t *testing.T) {
	c := sample()
	c.Annotations = map[string]string{names.PausedAnnotation: "true"}
	b := newTestEnv(t, c)
	b.reconcileUntilStable()
	for _, o := range plainCatalogObjects() {
		if b.get(o) {
			t.Errorf("%T %s was made", o, o.GetName())
		}
	}
	b.update(c, func() { c.Annotations = nil })
	b.reconcileUntilStable()
	must(b, &appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)})
}

// A recreated Catalog starts without the state of the deleted one.
func TestAnotherCatalogOfTheName(t *testing.T) {
	b := newTestEnv(t, sample())
	b.reconcileUntilStable()
	if err := b.server.Delete(t.Context(), must(b, sample())); err != nil {
		t.Fatal(err)
	}
	b.reconcileUntilStable()
	next := sample()
	next.UID = "next"
	b.create(next)
	b.reconcileUntilStable()
	for _, o := range plainCatalogObjects() {
		must(b, o)
		if refs := o.GetOwnerReferences(); len(refs) > 0 && (len(refs) != 1 || refs[0].UID != "next") {
			t.Errorf("%T %s: owners %v", o, o.GetName(), refs)
		}
	}
}

// The limit of additions can be used in a burst and refills by one a minute.
func TestSourceAdditionLimit(t *testing.T) {
	b := newTestEnv(t)
	mayAdd := func(uid types.UID) bool { return b.r.stateOf(uid).additionLimiter.TryAccept() }
	for i := range maxSourceAdditions {
		if !mayAdd("a") {
			t.Fatalf("addition %d is refused", i)
		}
	}
	if mayAdd("a") || !mayAdd("b") {
		t.Error("want additions rejected for the Catalog that reached its limit only")
	}
	b.stepClock(time.Minute)
	if !mayAdd("a") || mayAdd("a") {
		t.Error("want one addition allowed after a minute")
	}
	b.stepClock(100 * time.Minute)
	for range maxSourceAdditions {
		if !mayAdd("a") {
			t.Error("want additions allowed again after the period")
		}
	}
	if mayAdd("a") {
		t.Error("more additions were allowed than the budget")
	}
	b.r.forget("a")
	if !mayAdd("a") {
		t.Error("additions before forget were counted")
	}
}

// Strings of the spec do not change the structure of objects.
func FuzzStringsKeepStructure(f *testing.F) {
	f.Add("db.example.com", "secret", "apps.example.com")
	f.Add("a\": {}\n- b: c", "{{.}}", "$(X)")
	f.Fuzz(func(t *testing.T, host, secret, domain string) {
		c := sample(withExternal(aihubv1alpha1.ExternalDatabase{Host: host, SecretName: secret}))
		plain := sample(withExternal(aihubv1alpha1.ExternalDatabase{Host: "h", SecretName: "s"}))
		if !strings.Contains(domain, "\x00") {
			in := openShift(func(in *resources.Inputs) { in.Domain = domain })
			if got, want := len(buildObjects(t, c, in)), len(buildObjects(t, plain, openShift())); got != want {
				t.Errorf("%d objects, want %d", got, want)
			}
		}
		d := serverOf(t, c, kubernetes())
		env := d.Spec.Template.Spec.Containers[0].Env
		if len(env) != 4 || len(d.Spec.Template.Spec.Containers) != 2 {
			t.Errorf("%d variables, %d containers", len(env), len(d.Spec.Template.Spec.Containers))
		}
	})
}
