package framework_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

func widget(namespace, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "test.example.com/v1", "kind": "Widget"}}
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

var _ = Describe("an installed operator", func() {
	It("is installed without the Deployment of the manager", func(ctx SpecContext) {
		env.Get(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "test-system", Name: "manager"}})
		var deployments appsv1.DeploymentList
		Expect(env.Admin.List(ctx, &deployments, client.InNamespace("test-system"))).To(Succeed())
		Expect(deployments.Items).To(BeEmpty())
		Expect(installed.ServiceAccount.String()).To(Equal("test-system/manager"))
	})

	It("can be installed again, but not from a missing folder", func(ctx SpecContext) {
		_, err := operator.Install(ctx, env.Instance, installDir)
		Expect(err).NotTo(HaveOccurred())
		_, err = operator.Install(ctx, env.Instance, "test/no-such-folder")
		Expect(err).To(MatchError(ContainSubstring("test/no-such-folder")))
	}, NodeTimeout(specTimeout))

	It("is called by the API server through the Service of its webhook", func(ctx SpecContext) {
		certificate, key, err := cert.GenerateSelfSignedCertKey("webhook.test-system.svc", nil, nil)
		Expect(err).NotTo(HaveOccurred())
		serveDenials(ctx, installed.WebhookPort, certificate, key)
		configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "widgets.test.example.com"}}
		env.Get(ctx, configuration)
		configuration.Webhooks[0].ClientConfig.CABundle = certificate
		Expect(env.Admin.Update(ctx, configuration)).To(Succeed())

		reviewed := widget(env.Namespace(ctx, "webhook"), "reviewed")
		reviewed.SetLabels(map[string]string{"reviewed": "yes"})
		Eventually(func() error {
			return env.Admin.Create(ctx, reviewed.DeepCopy(), client.DryRunAll)
		}).Should(MatchError(ContainSubstring("denied by the test")))
	}, NodeTimeout(specTimeout))
})

// serveDenials serves a webhook that denies all requests.
func serveDenials(ctx context.Context, port int, certificate, key []byte) {
	GinkgoHelper()
	pair, err := tls.X509KeyPair(certificate, key)
	Expect(err).NotTo(HaveOccurred())
	listener, err := tls.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), &tls.Config{Certificates: []tls.Certificate{pair}})
	Expect(err).NotTo(HaveOccurred())
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Message: "denied by the test"}}
		_ = json.NewEncoder(w).Encode(review) // the API server reports a missing response
	})}
	go func() { _ = server.Serve(listener) }()
	DeferCleanup(func() error { return server.Shutdown(context.WithoutCancel(ctx)) })
}

var _ = Describe("a manager", func() {
	options := func(name string, args ...string) framework.ManagerOptions {
		return framework.ManagerOptions{
			Name: name, Binary: binary, ServiceAccount: installed.ServiceAccount, Args: args, Env: []string{"EXTRA=" + name},
		}
	}

	It("uses the permissions of its ServiceAccount", func(ctx SpecContext) {
		start := env.AuditPosition()
		manager := env.StartManager(ctx, options("rights"))
		Expect(manager.User).To(Equal("system:serviceaccount:test-system:manager"))
		writes := env.Since(start).ByUser(manager.User).Writes().ForResource("configmaps")
		Expect(writes).To(HaveLen(1), "%s", writes)
		Expect(writes[0]).To(And(
			HaveField("Verb", "create"), HaveField("Namespace", "test-system"), HaveField("Name", HavePrefix("greeting-")),
			HaveField("Code", http.StatusCreated), HaveField("DryRun", false), HaveField("ResourceVersion", Not(BeEmpty())),
		))
		Expect(string(writes[0].Request)).To(ContainSubstring(`"extra":"rights"`))
		Expect(manager.Process.LogTail()).To(ContainSubstring("arguments: run --health-probe-bind-address=127.0.0.1:"))
	}, NodeTimeout(specTimeout))

	It("can be restarted, killed and stopped", func(ctx SpecContext) {
		manager := env.StartManager(ctx, options("life"))
		first := manager.Process
		manager.Restart(ctx)
		Expect(manager.Process.PID).NotTo(Equal(first.PID))
		code, ended := first.ExitCode()
		Expect(ended).To(BeTrue())
		Expect(code).To(BeZero())
		manager.Kill(ctx)
		Expect(manager.Process.Running()).To(BeFalse())
		manager.Restart(ctx)
		manager.WaitReady(ctx)
		manager.Stop(ctx)
		Expect(manager.Manager.Stop(ctx)).To(MatchError(ContainSubstring("it has already exited with code 0")))
	}, NodeTimeout(specTimeout))

	It("reports an exit code other than 0", func(ctx SpecContext) {
		manager, err := operator.Start(ctx, env.Instance, options("badly", "--exit-code=3"))
		Expect(err).NotTo(HaveOccurred())
		Expect(manager.Stop(ctx)).To(MatchError(ContainSubstring("it exited with code 3, want 0")))
	}, NodeTimeout(specTimeout))

	It("is reported with its log if it exits immediately, and does not start without a ServiceAccount", func(ctx SpecContext) {
		_, err := operator.Start(ctx, env.Instance, options("broken", "--broken"))
		Expect(err).To(MatchError(And(ContainSubstring("the manager exited with code 1"), ContainSubstring("broken on purpose"))))
		_, err = operator.Start(ctx, env.Instance, framework.ManagerOptions{Binary: binary})
		Expect(err).To(MatchError(ContainSubstring("requesting a token")))
	}, NodeTimeout(specTimeout))
})

var _ = Describe("a manager shared by several specs", Ordered, func() {
	var shared *framework.Manager
	BeforeAll(func(ctx SpecContext) {
		shared = env.StartManager(ctx, framework.ManagerOptions{Name: "shared", Binary: binary, ServiceAccount: installed.ServiceAccount})
	}, NodeTimeout(specTimeout))

	It("can be stopped until the end of a spec", func(ctx SpecContext) {
		shared.StopTemporarily(ctx)
		Expect(shared.Process.Running()).To(BeFalse())
	}, NodeTimeout(specTimeout))

	It("is running again in the next spec, and can be stopped for a part of it", func(ctx SpecContext) {
		Expect(shared.Process.Running()).To(BeTrue())
		shared.StopTemporarily(ctx)
		shared.Restart(ctx)
		shared.WaitReady(ctx)
	}, NodeTimeout(specTimeout))
})

var _ = Describe("the audit log", func() {
	It("distinguishes writes without a change, dry runs and reads", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "audit")
		start := env.AuditPosition()
		object := widget(namespace, "seen")
		object.Object["spec"] = map[string]any{"size": int64(1)}
		Expect(env.Admin.Create(ctx, object)).To(Succeed())
		env.Patch(ctx, object, map[string]any{"spec": map[string]any{"size": 2}})
		env.Patch(ctx, object, map[string]any{"spec": map[string]any{"size": 2}})
		Expect(env.Admin.Create(ctx, widget(namespace, "dry"), client.DryRunAll)).To(Succeed())
		env.Get(ctx, object)
		list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "test.example.com/v1", "kind": "WidgetList"}}
		Expect(env.Admin.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
		Expect(env.Admin.Delete(ctx, object)).To(Succeed())

		entries := env.Since(start).ByUser(cluster.AdminUser).ForResource("widgets")
		var verbs []string
		for _, entry := range entries.Writes() {
			verbs = append(verbs, fmt.Sprintf("%s %s %t", entry.Verb, entry.Name, entry.DryRun))
		}
		Expect(verbs).To(Equal([]string{"create seen false", "patch seen false", "patch seen false", "create dry true", "delete seen false"}))
		Expect(entries.Reads()).To(HaveLen(2), "%s", entries)
		Expect(entries.Watches()).To(BeEmpty())
		Expect(entries.Unchanged()).To(HaveLen(1))
	}, NodeTimeout(specTimeout))

	It("shows whether a user is idle", func(ctx SpecContext) {
		env.ExpectNoWrites("nobody", time.Second)
		env.ExpectIdle("nobody", time.Second)
		env.WaitIdle("nobody", time.Second, time.Minute)
		stop := make(chan struct{})
		stopped := make(chan error, 1)
		namespace := env.Namespace(ctx, "busy")
		go func() {
			for count := 0; ; count++ {
				select {
				case <-stop:
					stopped <- nil
					return
				default:
				}
				if err := env.Admin.Create(ctx, widget(namespace, fmt.Sprintf("w%d", count))); err != nil {
					stopped <- err
					return
				}
			}
		}()
		failures := InterceptGomegaFailures(func() { env.ExpectNoWrites(cluster.AdminUser, time.Minute) })
		close(stop)
		Expect(<-stopped).To(Succeed())
		Expect(failures).To(ContainElement(ContainSubstring("create widgets.test.example.com")))
	}, NodeTimeout(specTimeout))
})

var _ = Describe("objects", func() {
	It("keep their generation when they are touched", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "touch")
		objectMeta := metav1.ObjectMeta{Namespace: namespace, Name: "touched"}
		labels := map[string]string{"app": "touched"}
		children := []client.Object{
			&corev1.Service{ObjectMeta: objectMeta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
			&corev1.ConfigMap{ObjectMeta: objectMeta},
			&appsv1.Deployment{ObjectMeta: objectMeta, Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "server", Image: "registry.example.com/server"}}},
				},
			}},
		}
		for _, child := range children {
			Expect(env.Admin.Create(ctx, child)).To(Succeed())
		}
		deployment := children[2].(*appsv1.Deployment)
		env.WaitFor(ctx, deployment, func(g Gomega) { g.Expect(deployment.Status.AvailableReplicas).To(BeEquivalentTo(1)) })
		generation := deployment.Generation
		env.Touch(ctx, children...)
		env.Touch(ctx, children...)
		env.Get(ctx, deployment)
		Expect(deployment.Generation).To(Equal(generation))
		Expect(deployment.Status.Conditions).To(ContainElement(HaveField("Type", BeEquivalentTo("TouchedByTest"))))
		Expect(deployment.Status.AvailableReplicas).To(BeEquivalentTo(1))
	}, NodeTimeout(specTimeout))

	It("are waited for until a condition is set and until they are deleted", func(ctx SpecContext) {
		object := widget(env.Namespace(ctx, "wait"), "awaited")
		Expect(env.Admin.Create(ctx, object)).To(Succeed())
		shortCtx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		failures := InterceptGomegaFailures(func() { env.WaitForCondition(shortCtx, object, "Ready", metav1.ConditionTrue, "") })
		Expect(failures).To(ContainElement(ContainSubstring("no condition Ready")))
		condition := map[string]any{
			"type": "Ready", "status": "True", "reason": "Done", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1,
		}
		env.Patch(ctx, object, map[string]any{"status": map[string]any{"conditions": []any{condition}}}, "status")
		env.WaitForCondition(ctx, object, "Ready", metav1.ConditionTrue, "Done")
		Expect(env.Admin.Delete(ctx, object)).To(Succeed())
		env.WaitDeleted(ctx, object)
	}, NodeTimeout(specTimeout))
})
