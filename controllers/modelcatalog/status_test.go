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

func (env *testEnv) availableCondition() metav1.Condition {
	env.Helper()
	got, _ := conditions.Get(mustGet(env, newCatalog()).Status.Conditions, ConditionAvailable)
	return got
}

// changeStatus updates the status of an object like a controller of Kubernetes.
func (env *testEnv) changeStatus(o client.Object, edit func()) {
	env.Helper()
	mustGet(env, o)
	edit()
	if err := env.server.SubResource("status").Update(env.Context(), o); err != nil {
		env.Fatal(err)
	}
}

// rollOut makes the server available like the controllers of Kubernetes: it sets the status of its Deployment and creates an EndpointSlice.
func (env *testEnv) rollOut(since time.Duration) {
	env.Helper()
	d := &appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}
	env.changeStatus(d, func() { d.Status = availableDeployment(since).Status; d.Status.ObservedGeneration = d.Generation })
	meta := nameMeta("model-catalog-x")
	meta.Labels = map[string]string{discoveryv1.LabelServiceName: resources.Name}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: meta, Endpoints: endpoints(new(true), "10.0.0.1")[0].Endpoints, AddressType: discoveryv1.AddressTypeIPv4}
	if !env.get(slice.DeepCopy()) {
		env.create(slice)
	}
}

// The condition reports the rollout until the catalog is available. The Catalog is requeued when no event would trigger a reconcile.
func TestStatusReportsTheRollout(t *testing.T) {
	env := newTestEnv(t, newCatalog())
	result, err := env.reconcile()
	if err != nil || result.RequeueAfter != reconciler.RequeueUnavailable || env.availableCondition().Reason != serving.ReasonStarting {
		t.Errorf("new Catalog: unexpected result %+v, error %v or condition %+v", result, err, env.availableCondition())
	}
	env.rollOut(time.Second)
	if result, err = env.reconcile(); err != nil || env.availableCondition().Reason != serving.ReasonCooldown || result.RequeueAfter > serving.Cooldown {
		t.Errorf("Deployment available: unexpected result %+v, error %v or condition %+v", result, err, env.availableCondition())
	}
	env.stepClock(serving.Cooldown)
	env.reconcileUntilStable()
	if got := env.availableCondition(); got.Status != metav1.ConditionTrue || got.Reason != serving.ReasonAvailable || got.Message != "Deployment is available" {
		t.Errorf("after the cooldown: got condition %+v, want True", got)
	}
	d := &appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}
	env.changeStatus(d, func() {
		d.Status.Conditions[0].Status = corev1.ConditionFalse
		d.Status.Conditions[0].Message = "stopped"
	})
	pod := &corev1.Pod{ObjectMeta: nameMeta("pod")}
	pod.Labels = resources.Selector(resources.Name)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{waitingStatus("catalog", "ErrImagePull", "no such image")}
	env.create(pod)
	database := pod.DeepCopy()
	database.ResourceVersion, database.Name, database.Labels = "", "another", resources.Selector(resources.DatabaseName)
	database.Status.ContainerStatuses = []corev1.ContainerStatus{waitingStatus("postgresql", "ErrImagePull", "[D18] not of the server")}
	env.create(database)
	const databaseCause = `; its database: image "" of container postgresql cannot be pulled; check its name, the registry and the pull secrets`
	env.reconcileUntilStable()
	if got := env.availableCondition(); got.Reason != ReasonConfiguration || got.Message != "container catalog waiting: no such image"+databaseCause {
		t.Errorf("got condition %+v, want the waiting container in the message", got)
	}
	if err := env.server.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	env.reconcileUntilStable()
	if got := env.availableCondition(); got.Message != "Deployment is unavailable: stopped"+databaseCause {
		t.Errorf("got condition %+v without a pod, want the message of the Deployment", got)
	}
}

// Conditions do not change until the Deployment controller has observed the current generation.
func TestStatusWaitsForTheDeploymentController(t *testing.T) {
	env := newTestEnv(t, newCatalog())
	env.reconcileUntilStable()
	env.rollOut(time.Hour)
	env.reconcileUntilStable()
	d := &appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}
	env.changeStatus(d, func() { d.Status.UnavailableReplicas = 1 })
	env.update(d, func() { d.Generation = d.Status.ObservedGeneration + 1 })
	result, err := env.reconcile()
	list := mustGet(env, newCatalog()).Status.Conditions
	if err != nil || result.RequeueAfter != reconciler.RequeueSoon || !conditions.IsTrue(list, ConditionAvailable) || !conditions.IsTrue(list, conditions.Ready) {
		t.Errorf("got %+v, error %v, conditions %+v, want a requeue and the previous conditions", result, err, list)
	}
}

// Every deleted object is recreated.
func TestDeletedObjectsAreRecreated(t *testing.T) {
	for _, o := range plainCatalogObjects() {
		env := newTestEnv(t, newCatalog())
		env.reconcileUntilStable()
		deleted := o.DeepCopyObject().(client.Object)
		if err := env.server.Delete(t.Context(), mustGet(env, deleted)); err != nil {
			t.Fatal(err)
		}
		env.reconcileUntilStable()
		mustGet(env, o)
	}
}

// Foreign labels and fields are kept [D5], and removed labels are restored [D8].
func TestForeignFieldsAreKept(t *testing.T) {
	env := newTestEnv(t, newCatalog())
	env.reconcileUntilStable()
	account := &corev1.ServiceAccount{ObjectMeta: nameMeta(resources.Name)}
	env.update(account, func() {
		account.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}}
		account.Labels["theirs"] = "1"
		delete(account.Labels, names.OperatorLabel)
	})
	env.reconcileUntilStable()
	mustGet(env, account)
	if account.Labels["theirs"] != "1" || len(account.ImagePullSecrets) != 1 || !resources.IsManaged(account) {
		t.Errorf("labels %v, pull secrets %v", account.Labels, account.ImagePullSecrets)
	}
}

// Objects of a feature are deleted when the spec disables it, and created again when it is enabled.
func TestDisabledFeaturesDeleteAndRecreateObjects(t *testing.T) {
	env := newTestEnv(t, newCatalog())
	env.reconcileUntilStable()
	c := newCatalog()
	env.update(c, func() {
		c.Spec.Proxy = &aihubv1alpha1.CatalogProxy{Mode: server.Disabled}
		c.Spec.Access = &aihubv1alpha1.CatalogAccess{Authenticated: server.Disabled}
		c.Spec.Database = &aihubv1alpha1.CatalogDatabase{External: &aihubv1alpha1.ExternalDatabase{Host: "db", SecretName: "db"}}
	})
	env.reconcileUntilStable()
	featureObjects := []client.Object{
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: resources.DelegatorBinding}}, &corev1.ConfigMap{ObjectMeta: nameMeta(resources.ProxyConfig)},
		&rbacv1.RoleBinding{ObjectMeta: nameMeta(resources.ReadersBinding)}, &appsv1.Deployment{ObjectMeta: nameMeta(resources.DatabaseName)}, &corev1.Service{ObjectMeta: nameMeta(resources.DatabaseName)},
	}
	for _, o := range featureObjects {
		if env.get(o) {
			t.Errorf("%T %s was not deleted", o, o.GetName())
		}
	}
	mustGet(env, &corev1.Secret{ObjectMeta: nameMeta(resources.DatabaseName)}) // kept, because Secrets are not pruned
	env.update(c, func() { c.Spec = aihubv1alpha1.CatalogSpec{} })
	env.reconcileUntilStable()
	for _, o := range featureObjects {
		mustGet(env, o)
	}
}

// SkipCatalogDatabase neither deletes an existing database nor creates one.
func TestSkippedDatabaseIsNotDeleted(t *testing.T) {
	env := newTestEnv(t, newCatalog())
	env.reconcileUntilStable()
	env.r.settings.SkipCatalogDatabase = true
	env.reconcileUntilStable()
	mustGet(env, &appsv1.Deployment{ObjectMeta: nameMeta(resources.DatabaseName)})
	mustGet(env, &corev1.Secret{ObjectMeta: nameMeta(resources.DatabaseName)})

	env = newTestEnv(t, newCatalog())
	env.r.settings.SkipCatalogDatabase = true
	env.reconcileUntilStable()
	if env.get(&appsv1.Deployment{ObjectMeta: nameMeta(resources.DatabaseName)}) || env.get(&corev1.Secret{ObjectMeta: nameMeta(resources.DatabaseName)}) {
		t.Error("a Deployment or Secret of a database was created")
	}
}

// Objects restored from a backup, with the UID of an earlier Catalog, are adopted.
func TestRestoredObjectsAreAdopted(t *testing.T) {
	service := &corev1.Service{ObjectMeta: nameMeta(resources.Name)}
	service.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: aihubv1alpha1.GroupVersion.String(), Kind: aihubv1alpha1.Kind, Name: "catalog", UID: "earlier", Controller: new(true)}}
	env := newTestEnv(t, newCatalog(), service)
	env.reconcileUntilStable()
	if refs := mustGet(env, service).OwnerReferences; len(refs) != 1 || refs[0].UID != newCatalog().UID {
		t.Errorf("owners %v", refs)
	}
}

// No objects are created for a paused Catalog until it is resumed.
func TestPaused(t *testing.T) {
	c := newCatalog()
	c.Annotations = map[string]string{names.PausedAnnotation: "true"}
	env := newTestEnv(t, c)
	env.reconcileUntilStable()
	for _, o := range plainCatalogObjects() {
		if env.get(o) {
			t.Errorf("%T %s was created", o, o.GetName())
		}
	}
	env.update(c, func() { c.Annotations = nil })
	env.reconcileUntilStable()
	mustGet(env, &appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)})
}

// A recreated Catalog does not use the state of the deleted one.
func TestRecreatedCatalog(t *testing.T) {
	env := newTestEnv(t, newCatalog())
	env.reconcileUntilStable()
	if err := env.server.Delete(t.Context(), mustGet(env, newCatalog())); err != nil {
		t.Fatal(err)
	}
	env.reconcileUntilStable()
	next := newCatalog()
	next.UID = "next"
	env.create(next)
	env.reconcileUntilStable()
	for _, o := range plainCatalogObjects() {
		mustGet(env, o)
		if refs := o.GetOwnerReferences(); len(refs) > 0 && (len(refs) != 1 || refs[0].UID != "next") {
			t.Errorf("%T %s: owners %v", o, o.GetName(), refs)
		}
	}
}

// The limit of additions allows a burst and is refilled by one per minute.
func TestSourceAdditionLimit(t *testing.T) {
	env := newTestEnv(t)
	mayAdd := func(uid types.UID) bool { return env.r.stateOf(uid).additionLimiter.TryAccept() }
	for i := range maxSourceAdditions {
		if !mayAdd("a") {
			t.Fatalf("addition %d was rejected", i)
		}
	}
	if mayAdd("a") || !mayAdd("b") {
		t.Error("want additions rejected only for the Catalog that reached its limit")
	}
	env.stepClock(time.Minute)
	if !mayAdd("a") || mayAdd("a") {
		t.Error("want one addition allowed after a minute")
	}
	env.stepClock(100 * time.Minute)
	for range maxSourceAdditions {
		if !mayAdd("a") {
			t.Error("want additions allowed again after the period")
		}
	}
	if mayAdd("a") {
		t.Error("more additions were allowed than the limit")
	}
	env.r.forget("a")
	if !mayAdd("a") {
		t.Error("additions before forget were counted")
	}
}

// Strings of the spec and the domain do not change the number of objects, containers and variables.
func FuzzStringsKeepStructure(f *testing.F) {
	f.Add("db.example.com", "secret", "apps.example.com")
	f.Add("a\": {}\n- b: c", "{{.}}", "$(X)")
	f.Fuzz(func(t *testing.T, host, secret, domain string) {
		c := newCatalog(withExternalDatabase(aihubv1alpha1.ExternalDatabase{Host: host, SecretName: secret}))
		plain := newCatalog(withExternalDatabase(aihubv1alpha1.ExternalDatabase{Host: "h", SecretName: "s"}))
		if !strings.Contains(domain, "\x00") {
			in := openShiftInputs(func(in *resources.Inputs) { in.Domain = domain })
			if got, want := len(buildObjects(t, c, in)), len(buildObjects(t, plain, openShiftInputs())); got != want {
				t.Errorf("got %d objects, want %d", got, want)
			}
		}
		d := serverOf(t, c, kubernetesInputs())
		env := d.Spec.Template.Spec.Containers[0].Env
		if len(env) != 4 || len(d.Spec.Template.Spec.Containers) != 2 {
			t.Errorf("got %d variables and %d containers, want 4 and 2", len(env), len(d.Spec.Template.Spec.Containers))
		}
	})
}
