<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Anywhere;

use Spindle\Tests\Eventually;
use Spindle\Tests\Nginx;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Text;
use Spindle\Tests\WebServer;

final class FpmTest extends AppContract
{
    use AsksByTcp;
    use FrontController;
    use Nginx;
    use OwnDirectory;
    use WebServer;

    private string $address = '';

    public function testAnAnswerThatBreaksOffIsNotTakenForWhole(): void
    {
        try {
            $this->ask('GET', '/breaks');
            self::fail('It is taken for whole');
        } catch (\UnexpectedValueException $broken) {
            self::assertMatchesRegularExpression('/^The answer breaks off after \d+ bytes of its body$/D', $broken->getMessage());
        }
        Eventually::holds(fn(): bool => str_contains(implode(Text::lines($this->path('error.log'))), 'in the middle'), 'the log has it');
        self::assertSame(418, $this->ask('GET', '/teapot')->getStatusCode());
    }

    private function address(): string
    {
        if ($this->address === '') {
            $page = $this->frontController();
            $this->startFpm();
            $this->address = $this->startNginx($this->directives($page));
        }

        return $this->address;
    }

    private function directives(string $page): string
    {
        $parameters = '';
        foreach (['QUERY_STRING', 'REQUEST_METHOD', 'CONTENT_TYPE', 'CONTENT_LENGTH', 'REQUEST_URI', 'SERVER_PROTOCOL', 'REMOTE_ADDR', 'REMOTE_PORT', 'SERVER_ADDR', 'SERVER_PORT'] as $name) {
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
