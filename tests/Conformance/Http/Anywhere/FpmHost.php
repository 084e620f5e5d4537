<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Anywhere;

use PHPUnit\Framework\Assert;
use Spindle\Tests\Nginx;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\WebServer;

/** Shares one FPM process behind nginx among the tests of a class. */
final class FpmHost extends Assert
{
    use FrontController;
    use Nginx;
    use OwnDirectory;
    use WebServer;

    private const PARAMETERS = [
        'QUERY_STRING', 'REQUEST_METHOD', 'CONTENT_TYPE', 'CONTENT_LENGTH', 'REQUEST_URI', 'SERVER_PROTOCOL',
        'REMOTE_ADDR', 'REMOTE_PORT', 'SERVER_ADDR', 'SERVER_PORT',
    ];

    public readonly string $address;

    /** Path of FPM's error log. */
    public readonly string $log;

    public function __construct()
    {
        $page = $this->frontController();
        $this->log = $this->path('error.log');
        $this->startFpm();
        $this->address = $this->startNginx($this->directives($page));
    }

    public function stop(): void
    {
        $this->stopNginx();
        $this->stopServer();
        $this->removeDirectory();
    }

    private function directives(string $page): string
    {
        $parameters = '';
        foreach (self::PARAMETERS as $name) {
            $parameters .= "fastcgi_param {$name} \$" . strtolower($name) . ";\n";
        }

        return <<<NGINX
            client_max_body_size 10m;
            location / {
                fastcgi_pass unix:{$this->path('socket')};
                fastcgi_param SCRIPT_FILENAME {$page};
                {$parameters}
            }
            NGINX;
    }
}
