// Package servers describes and reconciles published servers: model registries, the model catalog and MLflow. Each is a Deployment with a
// Service, a serving certificate, references to objects of users, and objects that publish it; some have an authenticating proxy and a
// database. Each component provides a Description of its server.
package servers
