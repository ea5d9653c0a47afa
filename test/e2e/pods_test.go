//go:build e2e

package e2e_test

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var (
	//go:embed testdata/web.yaml
	webObjects string
	//go:embed testdata/friends.yaml
	friendsPolicy string
	//go:embed testdata/pod.yaml
	podTemplate string
	//go:embed testdata/claim.yaml
	dataClaim string
)

// startPod creates a client pod and waits until it is ready.
func startPod(ctx context.Context, namespace, name string, values map[string]string) {
	GinkgoHelper()
	values["NAME"] = name
	if values["VOLUME"] == "" {
		values["VOLUME"] = "emptyDir: {}"
	}
	apply(ctx, namespace, os.Expand(podTemplate, func(key string) string { return values[key] }))
	waitPodReady(ctx, namespace, name)
}

func runInPod(ctx context.Context, namespace, pod, script string) (string, error) {
	return tryKubectl(ctx, "", "-n", namespace, "exec", pod, "--", "sh", "-c", script)
}

func fetchCommand(url string) string {
	return fmt.Sprintf(`python3 -c 'import urllib.request as u; print(u.urlopen("%s", timeout=3).read().decode())'`, url)
}

var _ = Describe("A real node", func() {
	It("implements Pod Security, volumes, probes and Services", func(ctx SpecContext) {
		namespace := createRestrictedNamespace(ctx, "web")
		apply(ctx, namespace, webObjects)
		waitRollout(ctx, namespace, "deployment/web")

		By("checking the permissions of the process")
		output, err := runInPod(ctx, namespace, "deployment/web", `id -u; id -G; cat /etc/secret/key; echo; stat -L -c %a /etc/secret/key; `+
			`echo "$KEY"; grep -E '^(Seccomp|CapEff|NoNewPrivs):' /proc/self/status; touch /x 2>&1; touch /tmp/x && echo writable`)
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.Join(strings.Fields(output), " ")).To(SatisfyAll(
			HavePrefix("1234 0 4321 secret value 440 secret value"), ContainSubstring("CapEff: 0000000000000000"),
			ContainSubstring("NoNewPrivs: 1"), ContainSubstring("Seccomp: 2"), ContainSubstring("Read-only file system"), HaveSuffix("writable")))

		By("connecting to a Service by its name, from another pod and from its own pod")
		startPod(ctx, namespace, "client", map[string]string{})
		Eventually(ctx, func(ctx context.Context) (string, error) {
			return runInPod(ctx, namespace, "client", fetchCommand("http://web."+namespace+".svc.cluster.local/"))
		}).Should(Equal("hello from a pod"))
		Eventually(ctx, func(ctx context.Context) (string, error) {
			return runInPod(ctx, namespace, "deployment/web", fetchCommand("http://web/"))
		}).Should(Equal("hello from a pod"))

		By("creating a pod that violates the Pod Security Standard")
		_, err = tryKubectl(ctx, "", "-n", namespace, "run", "root", "--image=localhost/base:latest", "--privileged")
		Expect(err).To(MatchError(ContainSubstring("violates PodSecurity")))
	}, SpecTimeout(specTimeout))

	It("enforces NetworkPolicies", func(ctx SpecContext) {
		namespace := createRestrictedNamespace(ctx, "policies")
		apply(ctx, namespace, webObjects)
		waitRollout(ctx, namespace, "deployment/web")
		startPod(ctx, namespace, "friend", map[string]string{"LABELS": `friend: "true"`})
		startPod(ctx, namespace, "stranger", map[string]string{})
		request := func(pod string) func(context.Context) (string, error) {
			return func(ctx context.Context) (string, error) {
				return runInPod(ctx, namespace, pod, fetchCommand("http://web/"))
			}
		}
		Eventually(ctx, request("stranger")).Should(Equal("hello from a pod"))
		apply(ctx, namespace, friendsPolicy)
		Eventually(ctx, func(ctx context.Context) error {
			_, err := request("stranger")(ctx)
			return err
		}).Should(MatchError(ContainSubstring("timed out")))
		Expect(request("friend")(ctx)).To(Equal("hello from a pod"))

		kubectl(ctx, "-n", namespace, "delete", "networkpolicy", "friends")
		Eventually(ctx, request("stranger")).Should(Equal("hello from a pod"))
	}, SpecTimeout(specTimeout))

	It("provisions volumes that root owns, as block storage does", func(ctx SpecContext) {
		namespace := createRestrictedNamespace(ctx, "claims")
		apply(ctx, namespace, dataClaim)
		volume := "persistentVolumeClaim: {claimName: data}"
		startPod(ctx, namespace, "plain", map[string]string{"VOLUME": volume})
		Expect(runInPod(ctx, namespace, "plain", "stat -c '%u:%g %a' /data")).To(Equal("0:0 755"))
		_, err := runInPod(ctx, namespace, "plain", "touch /data/x")
		Expect(err).To(MatchError(ContainSubstring("Permission denied")))

		By("checking fsGroup")
		kubectl(ctx, "-n", namespace, "delete", "pod", "plain")
		startPod(ctx, namespace, "grouped", map[string]string{"VOLUME": volume, "FS_GROUP": "fsGroup: 4321,"})
		Expect(runInPod(ctx, namespace, "grouped", "echo kept > /data/x && stat -c '%u:%g %a' /data")).To(Equal("0:4321 2775"))

		By("creating a later pod")
		kubectl(ctx, "-n", namespace, "delete", "pod", "grouped")
		startPod(ctx, namespace, "later", map[string]string{"VOLUME": volume, "FS_GROUP": "fsGroup: 4321,"})
		Expect(runInPod(ctx, namespace, "later", "cat /data/x")).To(Equal("kept"))

		By("deleting the claim")
		name := kubectl(ctx, "-n", namespace, "get", "pvc", "data", "-o", "jsonpath={.spec.volumeName}")
		kubectl(ctx, "-n", namespace, "delete", "pod/later", "pvc/data")
		Eventually(ctx, func(ctx context.Context) error {
			_, err := tryKubectl(ctx, "", "get", "pv", name)
			return err
		}).Should(MatchError(ContainSubstring("NotFound")))
	}, SpecTimeout(specTimeout))

	It("reports ImagePullBackOff for an image that does not exist", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "images")
		kubectl(ctx, "-n", namespace, "run", "absent", "--image=quay.io/example/absent:1")
		Eventually(ctx, func(ctx context.Context) (string, error) {
			return tryKubectl(ctx, "", "-n", namespace, "get", "pod", "absent", "-o", "jsonpath={.status.containerStatuses[0].state.waiting.reason}")
		}).Should(Equal("ImagePullBackOff"))
	}, SpecTimeout(specTimeout))
})
