// Command manager is a fake of the operator's manager. It accepts the flags and environment variables that tests set, creates one ConfigMap
// as its ServiceAccount, serves /readyz, and exits on SIGTERM with a given code.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	flags := flag.NewFlagSet("manager", flag.ContinueOnError)
	health := flags.String("health-probe-bind-address", "", "")
	flags.String("metrics-bind-address", "", "")
	flags.Int("webhook-port", 0, "")
	flags.Bool("leader-elect", true, "")
	code := flags.Int("exit-code", 0, "exit code on SIGTERM")
	broken := flags.Bool("broken", false, "exit immediately")
	if err := flags.Parse(os.Args[2:]); err != nil {
		return fmt.Errorf("parsing flags: %w", err)
	}
	fmt.Fprintln(os.Stderr, "arguments:", strings.Join(os.Args[1:], " "))
	if *broken {
		return fmt.Errorf("broken on purpose")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := writeConfigMap(ctx); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	go func() { _ = http.ListenAndServe(*health, mux) }()
	<-ctx.Done()
	os.Exit(*code)
	return nil
}

// writeConfigMap creates the ConfigMap.
func writeConfigMap(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	greeting := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "greeting-"}, Data: map[string]string{"extra": os.Getenv("EXTRA")},
	}
	if _, err := client.CoreV1().ConfigMaps(os.Getenv("POD_NAMESPACE")).Create(ctx, greeting, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating ConfigMap: %w", err)
	}
	return nil
}
