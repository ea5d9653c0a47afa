package servers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/pkg/servingcert"
	"github.com/odh-platform/odh-platform-operator/test/fakeapi"
)

// notebookEnv is a reconciler of Notebooks with a fake API server and clock.
type notebookEnv struct {
	*testing.T
	server *fakeapi.Server
	clock  *clocktesting.FakeClock
	once   func() error
}

func newNotebookEnv(t *testing.T, n *Notebook) *notebookEnv {
	t.Helper()
	scheme := fakeapi.Scheme(func(s *runtime.Scheme) error {
		s.AddKnownTypes(notebookKind.GroupVersion(), &Notebook{}, &NotebookList{})
		metav1.AddToGroupVersion(s, notebookKind.GroupVersion())
		return nil
	})
	mapper := meta.NewDefaultRESTMapper(nil) // that of the fake client has cluster scope for all kinds
	for kind := range scheme.AllKnownTypes() {
		scope := meta.RESTScope(meta.RESTScopeNamespace)
		if strings.HasPrefix(kind.Kind, "Cluster") {
			scope = meta.RESTScopeRoot
		}
		mapper.Add(kind, scope)
	}
	e := &notebookEnv{T: t, clock: clocktesting.NewFakeClock(time.Unix(1700000000, 0))}
	e.server = fakeapi.New(t, func() *fake.ClientBuilder {
		return fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithStatusSubresource(&Notebook{}, &appsv1.Deployment{}).
			WithIndex(&Notebook{}, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} })
	}, n)
	applier := apply.New(apply.Options{Client: e.server, Live: e.server, FieldOwner: "notebook-operator", Component: "notebook"})
	r := &notebooks{
		Reconciler: servers.NewReconciler(e.server, e.server, e.server, applier, e.clock),
		publishing: servers.Publishing{Exposure: config.Exposure{Kind: config.ExposeIngress, IngressDomain: "apps.example.com"}},
	}
	base := reconciler.New(reconciler.Options{Client: e.server, Component: "notebook"}, r.logic())
	e.once = func() error {
		_, err := base.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(n)})
		return err
	}
	return e
}

// reconcile reconciles until nothing is written, and returns the writes.
func (e *notebookEnv) reconcile() []string {
	e.Helper()
	var all []string
	for range 10 {
		e.server.Writes = nil
		if err := e.once(); err != nil {
			e.Fatal(err)
		}
		if len(e.server.Writes) == 0 {
			return all
		}
		for _, w := range e.server.Writes {
			all = append(all, w.String())
		}
	}
	e.Fatalf("it does not stop writing: %v", all)
	return nil
}

func (e *notebookEnv) get(object client.Object, name string) bool {
	e.Helper()
	err := e.server.Get(e.Context(), client.ObjectKey{Namespace: "team", Name: name}, object)
	if client.IgnoreNotFound(err) != nil {
		e.Fatal(err)
	}
	return !apierrors.IsNotFound(err)
}

func (e *notebookEnv) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// condition returns status and reason of a condition of the Notebook, "" without it.
func (e *notebookEnv) condition(kind string) string {
	e.Helper()
	n := &Notebook{}
	e.get(n, "lab")
	if c := meta.FindStatusCondition(n.Status.Conditions, kind); c != nil {
		return fmt.Sprintf("%s %s", c.Status, c.Reason)
	}
	return ""
}

// rollOut acts for the controllers of Deployments and EndpointSlices.
func (e *notebookEnv) rollOut() {
	e.Helper()
	d := &appsv1.Deployment{}
	e.get(d, "lab")
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2, ReadyReplicas: 2,
		Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(e.clock.Now().Add(-time.Minute))}},
	}
	e.must(e.server.Status().Update(e.Context(), d))
}

func newNotebook() *Notebook {
	n := &Notebook{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "lab"}}
	n.Spec.Image, n.Spec.Replicas, n.Spec.TokenSecret = "notebook:1", new(int32(2)), "token"
	return n
}

// Another server needs only a kind, a description and phases, see fifth_server_test.go, to have all objects of the others.
func TestFifthServer(t *testing.T) {
	e := newNotebookEnv(t, newNotebook())
	writes := e.reconcile()
	for _, want := range []string{
		"apply Secret lab-tls", "apply ServiceAccount lab", "apply Role notebook-user-lab", "apply NetworkPolicy lab-egress", "apply NetworkPolicy lab-ingress",
		"apply ConfigMap lab-kube-rbac-proxy-config", "apply ClusterRoleBinding lab-auth-delegator", "apply Service lab", "apply Deployment lab",
		"apply PodDisruptionBudget lab", "apply Ingress lab-https",
	} {
		if !slices.Contains(writes, want) {
			t.Errorf("no %s among %v", want, writes)
		}
	}
	guard, workload := slices.Index(writes, "apply NetworkPolicy lab-ingress"), slices.Index(writes, "apply Deployment lab")
	if exposure := slices.Index(writes, "apply Ingress lab-https"); guard > workload || workload > exposure {
		t.Errorf("the order is %v", writes)
	}
	if got := e.condition("Available"); got != "False DeploymentStarting" {
		t.Errorf("Available %q of a server that starts", got)
	}
	if got := e.condition(reference.Condition); got != "False "+reference.ReasonMissing {
		t.Errorf("%s %q without the Secret of the user", reference.Condition, got)
	}
	ingress := &networkingv1.Ingress{}
	if e.get(ingress, "lab-https"); ingress.Spec.Rules[0].Host != "lab.apps.example.com" || ingress.Annotations["nginx.ingress.kubernetes.io/backend-protocol"] != "HTTPS" {
		t.Errorf("ingress %+v", ingress)
	}
}

// References, certificate, availability and disruption budget follow changes as those of the others do. The steady state has no writes.
func TestFifthServerLives(t *testing.T) {
	e := newNotebookEnv(t, newNotebook())
	token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "token"}, Data: map[string][]byte{"token": []byte("a"), "other": []byte("a")}}
	e.must(e.server.Create(t.Context(), token))
	e.must(e.server.Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "lab-1", Labels: map[string]string{discoveryv1.LabelServiceName: "lab"}},
		Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
	}))
	e.reconcile()
	e.rollOut()
	if e.reconcile(); e.condition("Available") != "True DeploymentAvailable" || e.condition("Ready") != "True DeploymentAvailable" || e.condition(reference.Condition) != "" {
		t.Fatalf("Available %q, Ready %q, references %q", e.condition("Available"), e.condition("Ready"), e.condition(reference.Condition))
	}
	rollout := func() string {
		d := &appsv1.Deployment{}
		e.get(d, "lab")
		return d.Spec.Template.Annotations[reference.RolloutAnnotation]
	}
	token.Data["other"] = []byte("b")
	e.must(e.server.Update(t.Context(), token))
	if writes := e.reconcile(); len(writes) != 0 || rollout() != "" {
		t.Errorf("a key that pods do not use: %v", writes)
	}
	token.Data["token"] = []byte("b")
	e.must(e.server.Update(t.Context(), token))
	if e.reconcile(); rollout() == "" {
		t.Error("a changed token does not roll the pods")
	}
	e.rollOut()
	e.reconcile()
	e.clock.Step(servingcert.Lifetime)
	if writes := e.reconcile(); !slices.Equal(writes, []string{"apply Secret lab-tls"}) {
		t.Errorf("at the end of the certificate: %v", writes)
	}
	n := &Notebook{}
	e.get(n, "lab")
	n.Spec.Replicas = nil
	e.must(e.server.Update(t.Context(), n))
	if writes := e.reconcile(); e.get(&policyv1.PodDisruptionBudget{}, "lab") {
		t.Errorf("one replica has a disruption budget: %v", writes)
	}
}

// A foreign object is reported and not changed.
func TestFifthServerNextToForeignObjects(t *testing.T) {
	e := newNotebookEnv(t, newNotebook())
	foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "lab"}}
	e.must(e.server.Create(t.Context(), foreign))
	err := e.once()
	n := &Notebook{}
	e.get(n, "lab")
	c := meta.FindStatusCondition(n.Status.Conditions, "Available")
	if c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "Service team/lab") {
		t.Errorf("error %v, condition %+v", err, c)
	}
	if e.get(foreign, "lab"); len(foreign.OwnerReferences)+len(foreign.Labels) > 0 {
		t.Errorf("it is now %+v", foreign.ObjectMeta)
	}
}
