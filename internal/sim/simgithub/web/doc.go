// Package web serves the HTML pages of the GitHub simulator to people in a browser: repositories, issues, pull requests
// with their diffs and reviews, accounts, and the log of webhook deliveries. The demo and the browser tests use them.
//
// A page reads copies and acts as a simgithub.Person, so that every act is subject to the permissions of that account
// and sends the same webhooks as on GitHub. Start with Handler and the table of pages in site.routes.
package web
