//go:build e2e

package e2e_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/node/images"
)

var (
	//go:embed testdata/writer.yaml
	writerPod string
	//go:embed testdata/late.yaml
	lateRegistry string
)

// lateServer selects the server pod of the registry late, whose database starts after the server.
var lateServer = crclient.MatchingLabels{"app.kubernetes.io/name": "late"}

const (
	sample = "modelregistry-sample"
	// legacyRestartDelay is the time after which a server of the legacy operator was restarted while it waited for its database.
	legacyRestartDelay = 40 * time.Second
)

var _ = Describe("A ModelRegistry with a generated database", Ordered, Label("ci"), func() {
	var (
		namespace string
		client    = &registryClient{}
	)
	in := func(args ...string) []string { return append([]string{"-n", namespace}, args...) }
	acknowledged := func(ctx context.Context) ([]string, error) {
		output, err := tryKubectl(ctx, "", in("logs", "writer")...)
		return strings.Fields(output), err
	}
	// lostModels waits for more writes, and returns acknowledged models that the registry does not store.
	lostModels := func(ctx context.Context) []string {
		GinkgoHelper()
		before, err := acknowledged(ctx)
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, func(ctx context.Context) (int, error) {
			names, err := acknowledged(ctx)
			return len(names), err
		}, podTimeout).Should(BeNumerically(">", len(before)+5), "no more writes are acknowledged")
		names, err := acknowledged(ctx)
		Expect(err).NotTo(HaveOccurred())
		return client.missing(ctx, names)
	}

	BeforeAll(func(ctx SpecContext) {
		namespace = createRestrictedNamespace(ctx, "registry")
		apply(ctx, namespace, lateRegistry)
		*client = *newRegistry(ctx, namespace)
	}, NodeTimeout(specTimeout))

	It("stores a model that a client registers through its Service", func(ctx SpecContext) {
		var stored struct{ ID, Name, Description string }
		Eventually(ctx, func(ctx context.Context) (string, error) {
			status, body, err := client.request(ctx, http.MethodPost, "", `{"name": "credit-risk", "description": "scores", "customProperties": {}}`)
			if err == nil && status == http.StatusCreated {
				err = json.Unmarshal([]byte(body), &stored)
			}
			return stored.ID, err
		}).ShouldNot(BeEmpty())
		status, body, err := client.request(ctx, http.MethodGet, "/"+stored.ID, "")
		Expect(err).NotTo(HaveOccurred())
		Expect(status).To(Equal(http.StatusOK), body)
		stored.Description = ""
		Expect(json.Unmarshal([]byte(body), &stored)).To(Succeed())
		Expect(stored.Name + " " + stored.Description).To(Equal("credit-risk scores"))
	}, SpecTimeout(specTimeout))

	It("keeps every acknowledged write when the pod of its database is deleted", func(ctx SpecContext) {
		apply(ctx, namespace, writerPod)
		Eventually(ctx, acknowledged, podTimeout).ShouldNot(BeEmpty())
		replaceDatabase(ctx, namespace, "--grace-period=120")
		Expect(lostModels(ctx)).To(BeEmpty())
	}, SpecTimeout(specTimeout))

	// The Deployment replaces the pod immediately, on the same volume, and each server is process 1 of its pod.
	It("runs one PostgreSQL server at a time on the volume of its database, even if the previous server hangs, and keeps acknowledged writes", func(ctx SpecContext) {
		const volumeInUse = "Another server still uses this volume"
		previous := databasePod(ctx, namespace)
		signal := func(s syscall.Signal) (count int) {
			for _, pid := range podProcesses(string(previous.UID)) {
				if command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && strings.HasPrefix(string(command), "postgres") {
					_ = syscall.Kill(pid, s) // child processes exit with process 1
					count++
				}
			}
			return count
		}
		Expect(signal(syscall.SIGSTOP)).To(BeNumerically(">", 1), "the server has no child processes")
		kubectl(ctx, in("delete", "pod", previous.Name, "--wait=false")...)
		log := func(ctx context.Context) (string, error) {
			return tryKubectl(ctx, "", in("logs", databasePod(ctx, namespace).Name)...)
		}
		Eventually(ctx, log, podTimeout).Should(ContainSubstring(volumeInUse))
		By("deleting the waiting pod, which must exit before its grace period of two minutes ends")
		kubectl(ctx, in("delete", "pod", databasePod(ctx, namespace).Name, "--timeout=60s")...)
		Eventually(ctx, log, podTimeout).Should(ContainSubstring(volumeInUse))
		By("killing the first server")
		Expect(signal(syscall.SIGKILL)).NotTo(BeZero()) // the other processes may already have exited with process 1
		Eventually(ctx, log, podTimeout).Should(ContainSubstring("ready to accept connections"))
		Expect(podProcesses(string(previous.UID))).To(BeEmpty())
		Expect(lostModels(ctx)).To(BeEmpty())
	}, SpecTimeout(specTimeout))

	It("uses a new password after a change of its Secret, and keeps acknowledged writes", func(ctx SpecContext) {
		startLateDatabase(ctx, namespace) // the late PostgreSQL server starts during this spec
		const secret = sample + "-postgres-credentials"
		command := `PGPASSWORD=$0 psql -h 127.0.0.1 -U "$POSTGRESQL_USER" -d "$POSTGRESQL_DATABASE" -Atc 'SELECT 1'`
		login := func(ctx context.Context, password string) (string, error) {
			return tryKubectl(ctx, "", in("exec", "deployment/"+sample+"-postgres", "--", "sh", "-c", command, password)...)
		}
		previous := kubectl(ctx, in("get", "secret", secret, "-o", "go-template={{.data.password | base64decode}}")...)
		Expect(login(ctx, previous)).To(Equal("1"))
		kubectl(ctx, in("patch", "secret", secret, "--type=merge", "-p", `{"stringData": {"password": "another"}}`)...)
		Eventually(ctx, func(ctx context.Context) (string, error) { return login(ctx, "another") }, podTimeout).Should(Equal("1"))
		_, err := login(ctx, previous)
		Expect(err).To(MatchError(ContainSubstring("password authentication failed")))
		Expect(lostModels(ctx)).To(BeEmpty())
		kubectl(ctx, in("delete", "pod", "writer")...)
	}, SpecTimeout(specTimeout))

	It("waits for a late database, without a restart of its server", func(ctx SpecContext) {
		kubectl(ctx, in("wait", "--for=condition=Available", "modelregistry/late", fmt.Sprint("--timeout=", podTimeout))...)
		Expect(waitSinglePod(ctx, namespace, lateServer).Status.ContainerStatuses[0].RestartCount).To(BeZero())
	}, SpecTimeout(specTimeout))

	It("connects to its database through TLS only, backs it up, and shares it with a registry that references it by a Secret", func(ctx SpecContext) {
		expectEncryptedDatabase(ctx, namespace)
		expectBackup(ctx, namespace)
		expectSharedDatabase(ctx, namespace)
		kubectl(ctx, in("delete", "modelregistry", "late", "sharing")...)
	}, SpecTimeout(specTimeout))

	It("keeps its server while its proxy has no certificate, and then serves only authorized accounts", func(ctx SpecContext) {
		kubectl(ctx, in("patch", "modelregistry", sample, "--type=merge", "-p",
			`{"spec": {"kubeRBACProxy": {"tlsCertificateSecret": {"name": "registry-tls", "key": "tls.crt"}, "tlsKeySecret": {"name": "registry-tls", "key": "tls.key"}}}}`)...)
		kubectl(ctx, in("wait", "--for=condition=ReferencesReady=False", "modelregistry/"+sample)...)
		status, body, err := client.request(ctx, http.MethodGet, "", "")
		Expect(err).NotTo(HaveOccurred(), "the registry cannot be reached")
		Expect(status).To(Equal(http.StatusOK), body)

		By("creating the certificate")
		client.createCertificate(ctx, "registry-tls")
		client.base = "https://" + sample + ":8443"
		for _, account := range []string{"user", "stranger"} {
			kubectl(ctx, in("create", "serviceaccount", account)...)
		}
		kubectl(ctx, in("create", "rolebinding", "user", "--role=registry-user-"+sample, "--serviceaccount="+namespace+":user")...)
		for _, test := range []struct {
			account string
			want    int
		}{{"", http.StatusUnauthorized}, {"stranger", http.StatusForbidden}, {"user", http.StatusOK}} {
			client.token = ""
			if test.account != "" {
				client.token = kubectl(ctx, in("create", "token", test.account)...)
			}
			Eventually(ctx, func(ctx context.Context) (int, error) {
				status, _, err := client.request(ctx, http.MethodGet, "", "")
				return status, err
			}, podTimeout).Should(Equal(test.want), "status for ServiceAccount %q", test.account)
		}

		By("authorizing HTTP methods by their verbs [S4]")
		for _, test := range []struct {
			method, path, body string
			want               int
		}{
			{http.MethodPost, "", `{"name": "by-a-user", "customProperties": {}}`, http.StatusCreated},
			{http.MethodPatch, "/1", `{"description": "other"}`, http.StatusForbidden},
		} {
			status, body, err := client.request(ctx, test.method, test.path, test.body)
			Expect(err).NotTo(HaveOccurred())
			Expect(status).To(Equal(test.want), body)
		}
	}, SpecTimeout(specTimeout))

	It("serves the stored models after a restart of the node, and the operator elects a leader", func(ctx SpecContext) {
		restarts := func(ctx context.Context) (int, error) {
			return strconv.Atoi(kubectl(ctx, "-n", operatorNamespace, "get", "pods", managerPods, "-o", "jsonpath={.items[0].status.containerStatuses[0].restartCount}"))
		}
		before, err := restarts(ctx)
		Expect(err).NotTo(HaveOccurred())
		managers := managerPodUIDs(ctx)
		Expect(env.Instance.RestartNode(ctx)).To(Succeed())
		Eventually(ctx, restarts, podTimeout).Should(BeNumerically(">", before), "the container of the manager was not restarted")
		Eventually(ctx, client.names, podTimeout).Should(ContainElement("credit-risk"))
		By("waiting for a leader")
		expectLeader(ctx, namespace, podTimeout)
		Expect(managerPodUIDs(ctx)).To(Equal(managers), "the pods of the manager were replaced")
	}, SpecTimeout(specTimeout))

	describeOperator(client)
})

// startLateDatabase starts the database of the registry late after its server has waited longer than legacyRestartDelay.
func startLateDatabase(ctx context.Context, namespace string) {
	GinkgoHelper()
	server := waitSinglePod(ctx, namespace, lateServer)
	Eventually(ctx, func() time.Duration {
		return time.Since(server.Status.ContainerStatuses[0].State.Running.StartedAt.Time)
	}).
		Should(BeNumerically(">", legacyRestartDelay+10*time.Second), "the server has not waited longer than legacyRestartDelay")
	Expect(images.Postgres(ctx, store, "quay.io/example/late:1")).To(Succeed())
	// The kubelet backs off from pulling the image of the previous pod.
	kubectl(ctx, "-n", namespace, "delete", "pod", "--wait=false", "--selector=app.kubernetes.io/name=late-postgres")
}

// databasePod waits until exactly one pod of the database is not terminating, and returns the pod.
func databasePod(ctx context.Context, namespace string) *corev1.Pod {
	GinkgoHelper()
	return waitSinglePod(ctx, namespace, crclient.MatchingLabels{"app.kubernetes.io/name": sample + "-postgres"})
}

// replaceDatabase deletes the pod of the database, and waits until its processes have exited and the new pod is ready.
func replaceDatabase(ctx context.Context, namespace, option string) {
	GinkgoHelper()
	previous := databasePod(ctx, namespace)
	kubectl(ctx, "-n", namespace, "delete", "pod", previous.Name, "--wait=false", option)
	Eventually(ctx, podProcesses, podTimeout).WithArguments(string(previous.UID)).Should(BeEmpty())
	Eventually(ctx, func(ctx context.Context) time.Time { return readySince(databasePod(ctx, namespace)) }, podTimeout).ShouldNot(BeZero())
}
